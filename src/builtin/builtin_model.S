/* The bytes of the built-in model, read by the assembler from assets/nano.gguf. Aligned to 64 bytes,
   so that its tensors lie as well as those of a mapped file. */
#if defined(__CET__)
#include <cet.h>
#endif
        .section .rodata.cairn_builtin_model, "a", %progbits
        .balign 64
        .global cairn_builtin_model_begin
        .hidden cairn_builtin_model_begin
cairn_builtin_model_begin:
        .incbin CAIRN_BUILTIN_MODEL_PATH
        .global cairn_builtin_model_end
        .hidden cairn_builtin_model_end
cairn_builtin_model_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
