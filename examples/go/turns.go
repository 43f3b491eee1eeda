// Two turns with a model, by cgo; then it goes back and answers again, and so does a fork that was
// cancelled: turns MODEL.gguf QUESTION SECOND_QUESTION
//
//	CGO_CFLAGS=$(pkg-config --cflags cairn) CGO_LDFLAGS=$(pkg-config --libs cairn) go run turns.go …
package main

// #include <cairn.h>
// #include <stdlib.h>
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type failure struct{ said C.cairn_error }

func newFailure() *failure {
	return &failure{C.cairn_error{struct_size: C.sizeof_cairn_error}}
}

func (f *failure) check(status C.cairn_status) C.cairn_status {
	if status < 0 {
		panic(errors.New(C.GoString(&f.said.message[0])))
	}
	return status
}

// Makes the messages the conversation's text, and returns its position.
func read(model *C.cairn_model, c *C.cairn_conversation, messages []message) C.uint32_t {
	text, _ := json.Marshal(messages)
	request := C.CString(string(text))
	defer C.free(unsafe.Pointer(request))
	tokens := make([]C.cairn_token, 4096)
	var count C.size_t
	f := newFailure()
	f.check(C.cairn_chat_render(model, request, C.size_t(len(text)), &tokens[0], 4096, &count,
		&f.said))
	f.check(C.cairn_sync(c, &tokens[0], count, nil, &f.said))
	return C.uint32_t(count)
}

// A cancelled call is made once more, and chooses the same token.
func answer(c *C.cairn_conversation) string {
	var text strings.Builder
	f := newFailure()
	event := C.cairn_event{struct_size: C.sizeof_cairn_event}
	for {
		switch f.check(C.cairn_next(c, &event, &f.said)) {
		case C.CAIRN_OK:
			text.WriteString(C.GoStringN(event.text, C.int(event.text_bytes)))
		case C.CAIRN_DONE:
			return text.String()
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "turns MODEL.gguf QUESTION SECOND_QUESTION")
		os.Exit(1)
	}
	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	f := newFailure()
	var model *C.cairn_model
	var engine *C.cairn_engine
	var c, fork *C.cairn_conversation
	f.check(C.cairn_model_open(path, &model, &f.said))
	defer C.cairn_model_close(model)
	f.check(C.cairn_engine_open(model, nil, &engine, &f.said))
	defer C.cairn_engine_close(engine)
	f.check(C.cairn_conversation_open(engine, &c, &f.said))
	defer C.cairn_conversation_close(c)

	messages := []message{{"user", os.Args[2]}}
	read(model, c, messages)
	first := answer(c)
	fmt.Println(first)
	messages = append(messages, message{"assistant", first}, message{"user", os.Args[3]})
	asked := read(model, c, messages)
	fmt.Println(answer(c))

	f.check(C.cairn_rewind(c, asked, nil, &f.said))
	f.check(C.cairn_fork(c, nil, &fork, &f.said))
	defer C.cairn_conversation_close(fork)
	fmt.Println(answer(c))
	C.cairn_cancel(fork)
	fmt.Println(answer(fork))
}
