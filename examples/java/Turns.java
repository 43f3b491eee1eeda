// Two turns with a model, by JNI; then it goes back and answers again, and so does a fork that was
// cancelled: java -cp FOLDER -Djava.library.path=FOLDER Turns MODEL.gguf QUESTION SECOND_QUESTION
// The natives are in turns.c beside it. A handle of cairn.h is a number, in Java a long.
final class Turns {
  static native long openModel(String path);
  static native void closeModel(long model);
  static native long openEngine(long model);
  static native void closeEngine(long engine);
  static native long openConversation(long engine);
  static native void closeConversation(long conversation);
  // Makes the messages (JSON) the conversation's text, and returns its position.
  static native int read(long model, long conversation, String messages);
  // The next piece of text; null at the answer's end.
  static native byte[] next(long conversation);
  static native void rewind(long conversation, int position);
  static native long fork(long conversation);
  static native void cancel(long conversation);

  static String message(String role, String content) {
    StringBuilder quoted = new StringBuilder();
    for (char each : content.toCharArray()) {
      boolean isPlain = each >= ' ' && each < 127 && each != '"' && each != '\\';
      quoted.append(isPlain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
    }
    return "{\"role\": \"" + role + "\", \"content\": \"" + quoted + "\"}";
  }

  static String answer(long conversation) throws java.io.IOException {
    java.io.ByteArrayOutputStream text = new java.io.ByteArrayOutputStream();
    for (byte[] piece; (piece = next(conversation)) != null;) text.write(piece);
    return text.toString(java.nio.charset.StandardCharsets.UTF_8);
  }

  public static void main(String[] arguments) throws java.io.IOException {
    if (arguments.length != 3) {
      System.err.println("Turns MODEL.gguf QUESTION SECOND_QUESTION");
      System.exit(1);
    }
    System.loadLibrary("turns");
    long model = openModel(arguments[0]);
    long engine = openEngine(model);
    long conversation = openConversation(engine);
    String question = message("user", arguments[1]);
    read(model, conversation, "[" + question + "]");
    String first = answer(conversation);
    System.out.println(first);
    String second = message("assistant", first) + ", " + message("user", arguments[2]);
    int asked = read(model, conversation, "[" + question + ", " + second + "]");
    System.out.println(answer(conversation));

    rewind(conversation, asked);
    long fork = fork(conversation);
    System.out.println(answer(conversation));
    cancel(fork);
    System.out.println(answer(fork));
    closeConversation(fork);
    closeEngine(engine); // In any order.
    closeModel(model);
    closeConversation(conversation);
  }
}
