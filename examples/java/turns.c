// The natives of Turns.java: cairn.h by JNI. An error is a RuntimeException with its sentence.
//   javac -h FOLDER -d FOLDER Turns.java
//   cc -shared -fPIC turns.c -o FOLDER/libturns.so -I FOLDER -I $JAVA_HOME/include
//     -I $JAVA_HOME/include/linux $(pkg-config --cflags --libs cairn)
#include "Turns.h"

#include <cairn.h>
#include <string.h>

enum { TOKENS_MAX = 4096 };

static cairn_error no_error(void) {
  return (cairn_error){.struct_size = sizeof(cairn_error)};
}

static cairn_status check(JNIEnv* env, cairn_status status, const cairn_error* error) {
  if (status < 0) {
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/RuntimeException"), error->message);
  }
  return status;
}

static cairn_conversation* conversation_of(jlong handle) {
  return (cairn_conversation*)(intptr_t)handle;
}

JNIEXPORT jlong JNICALL Java_Turns_openModel(JNIEnv* env, jclass self, jstring path) {
  (void)self;
  cairn_error error = no_error();
  cairn_model* model = NULL;
  const char* const text = (*env)->GetStringUTFChars(env, path, NULL);
  if (text == NULL) return 0;
  check(env, cairn_model_open(text, &model, &error), &error);
  (*env)->ReleaseStringUTFChars(env, path, text);
  return (jlong)(intptr_t)model;
}

JNIEXPORT void JNICALL Java_Turns_closeModel(JNIEnv* env, jclass self, jlong model) {
  (void)env, (void)self;
  cairn_model_close((cairn_model*)(intptr_t)model);
}

JNIEXPORT jlong JNICALL Java_Turns_openEngine(JNIEnv* env, jclass self, jlong model) {
  (void)self;
  cairn_error error = no_error();
  cairn_engine* engine = NULL;
  check(env, cairn_engine_open((cairn_model*)(intptr_t)model, NULL, &engine, &error), &error);
  return (jlong)(intptr_t)engine;
}

JNIEXPORT void JNICALL Java_Turns_closeEngine(JNIEnv* env, jclass self, jlong engine) {
  (void)env, (void)self;
  cairn_engine_close((cairn_engine*)(intptr_t)engine);
}

JNIEXPORT jlong JNICALL Java_Turns_openConversation(JNIEnv* env, jclass self, jlong engine) {
  (void)self;
  cairn_error error = no_error();
  cairn_conversation* made = NULL;
  check(env, cairn_conversation_open((cairn_engine*)(intptr_t)engine, &made, &error), &error);
  return (jlong)(intptr_t)made;
}

JNIEXPORT void JNICALL Java_Turns_closeConversation(JNIEnv* env, jclass self, jlong handle) {
  (void)env, (void)self;
  cairn_conversation_close(conversation_of(handle));
}

// The messages are ASCII, so that Java's own form of UTF-8 is that of everybody.
JNIEXPORT jint JNICALL Java_Turns_read(JNIEnv* env, jclass self, jlong model, jlong handle,
                                       jstring messages) {
  (void)self;
  cairn_error error = no_error();
  cairn_token tokens[TOKENS_MAX];
  size_t count = 0;
  const char* const text = (*env)->GetStringUTFChars(env, messages, NULL);
  if (text == NULL) return 0;
  cairn_status status = cairn_chat_render((cairn_model*)(intptr_t)model, text, strlen(text), tokens,
                                          TOKENS_MAX, &count, &error);
  (*env)->ReleaseStringUTFChars(env, messages, text);
  if (status >= 0) status = cairn_sync(conversation_of(handle), tokens, count, NULL, &error);
  check(env, status, &error);
  return (jint)count;
}

// A cancelled call is made once more, and chooses the same token.
JNIEXPORT jbyteArray JNICALL Java_Turns_next(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  cairn_error error = no_error();
  cairn_event event = {.struct_size = sizeof event};
  cairn_status status = CAIRN_CANCELLED;
  while (status == CAIRN_CANCELLED) status = cairn_next(conversation_of(handle), &event, &error);
  if (check(env, status, &error) != CAIRN_OK) return NULL;
  const jbyteArray text = (*env)->NewByteArray(env, (jsize)event.text_bytes);
  if (text == NULL) return NULL;
  (*env)->SetByteArrayRegion(env, text, 0, (jsize)event.text_bytes, (const jbyte*)event.text);
  return text;
}

JNIEXPORT void JNICALL Java_Turns_rewind(JNIEnv* env, jclass self, jlong handle, jint position) {
  (void)self;
  cairn_error error = no_error();
  check(env, cairn_rewind(conversation_of(handle), (uint32_t)position, NULL, &error), &error);
}

JNIEXPORT jlong JNICALL Java_Turns_fork(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  cairn_error error = no_error();
  cairn_conversation* made = NULL;
  check(env, cairn_fork(conversation_of(handle), NULL, &made, &error), &error);
  return (jlong)(intptr_t)made;
}

JNIEXPORT void JNICALL Java_Turns_cancel(JNIEnv* env, jclass self, jlong handle) {
  (void)env, (void)self;
  cairn_cancel(conversation_of(handle));
}
