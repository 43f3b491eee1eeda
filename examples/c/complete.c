// Answers a question with a model, one token after the other: complete MODEL.gguf QUESTION
// Afterwards it goes back to where the answer began, and makes another one of it.
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 4096 };

static int report(const char* what, const cairn_error* error) {
  fprintf(stderr, "%s: %s\n", what, error->message);
  return 1;
}

// The request that a chat template takes, with the question as a JSON string.
static char* request_of(const char* question) {
  static const char begin[] = "[{\"role\": \"user\", \"content\": \"", end[] = "\"}]";
  char* const request = malloc(sizeof begin + 6 * strlen(question) + sizeof end);
  if (request == NULL) return NULL;
  char* at = request + sprintf(request, "%s", begin);
  for (; *question != '\0'; ++question) {
    const unsigned char c = (unsigned char)*question;
    if (c < 0x20 || c == '"' || c == '\\') {
      at += sprintf(at, "\\u%04x", (unsigned)c);
    } else {
      *at++ = (char)c;
    }
  }
  strcpy(at, end);
  return request;
}

static cairn_status print_answer(cairn_conversation* conversation, cairn_error* error) {
  cairn_event event = {.struct_size = sizeof event};
  cairn_status status;
  while ((status = cairn_next(conversation, &event, error)) == CAIRN_OK) {
    fwrite(event.text, 1, event.text_bytes, stdout);
    fflush(stdout);
  }
  putchar('\n');
  return status;
}

static int answer(cairn_model* model, cairn_conversation* conversation, const char* question) {
  cairn_error error = {.struct_size = sizeof error};
  cairn_sampling sampling;
  cairn_sampling_init(model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = 200;
  if (cairn_set_sampling(conversation, &sampling, &error) < 0) return report("sampling", &error);

  static cairn_token tokens[TOKENS_MAX];
  size_t count = 0;
  char* const request = request_of(question);
  if (request == NULL) return 1;
  const cairn_status rendered = cairn_chat_render(model, request, strlen(request), tokens,
                                                  TOKENS_MAX, &count, &error);
  free(request);
  if (rendered < 0) return report("question", &error);

  cairn_plan plan = {.struct_size = sizeof plan};
  if (cairn_sync(conversation, tokens, count, &plan, &error) < 0) return report("prompt", &error);
  fprintf(stderr, "%u tokens computed of %zu\n", (unsigned)plan.forward_tokens, count);
  cairn_snapshot* asked = NULL;
  if (cairn_snapshot_take(conversation, &asked, &error) < 0) return report("snapshot", &error);
  cairn_status status = print_answer(conversation, &error);

  if (status == CAIRN_DONE && cairn_rewind_to(conversation, asked, &plan, &error) == CAIRN_OK) {
    fprintf(stderr, "again: %u tokens computed\n", (unsigned)plan.forward_tokens);
    sampling.temperature = 1;
    status = cairn_set_sampling(conversation, &sampling, &error);
    if (status == CAIRN_OK) status = print_answer(conversation, &error);
  }
  cairn_snapshot_release(asked);
  return status == CAIRN_DONE ? 0 : report("answer", &error);
}

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    fprintf(stderr, "complete MODEL.gguf QUESTION\n");
    return 1;
  }
  cairn_error error = {.struct_size = sizeof error};
  cairn_model* model = NULL;
  cairn_engine* engine = NULL;
  cairn_conversation* conversation = NULL;
  if (cairn_model_open(arguments[1], &model, &error) < 0) return report("model", &error);
  if (cairn_engine_open(model, NULL, &engine, &error) < 0) return report("engine", &error);
  if (cairn_conversation_open(engine, &conversation, &error) < 0) {
    return report("conversation", &error);
  }
  const int status = answer(model, conversation, arguments[2]);
  cairn_conversation_close(conversation);
  cairn_engine_close(engine);
  cairn_model_close(model);
  return status;
}
