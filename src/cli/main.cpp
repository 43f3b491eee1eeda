// placeholder for configure
int main() {
  return 0;
}
