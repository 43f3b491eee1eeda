#!/usr/bin/env python3
"""The same GBNF in this program and in the Python package xgrammar: along random walks every mask
must be equal, bit for bit. Exits 77 where the package is not installed.

  against_xgrammar.py grammar_session WALKS MODEL.gguf...
"""
import random
import sys

from session import Session, choose

try:
    import numpy
    import xgrammar
except ImportError:
    print("the Python package xgrammar is not installed")
    sys.exit(77)

GRAMMARS = {
    "json": r'''
root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= "" | " " | "\n" [ \t]{0,20}
''',
    "arithmetic": r'''
root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*
''',
    "list": r'''
root ::= item+
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
''',
    "characters": r'''
root ::= ([ぁ-ゟ] | [а-яё]+ " " | "é" | "😀" [^a-z0-9])+ "."
''',
    "counted": r'''
root ::= ("ab" | "cd" [x-z]?){3,200} ("\n" [a-z]{2,40}){1,12} "end"
''',
    "chess": r'''
root ::= ("1. " move " " move "\n") ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
''',
}


def main():
    program, walks, models = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    masks = 0
    for model in models:
        session = Session(program, model)
        size = len(session.pieces)
        ends = [token for token in range(size) if session.kinds[token] == "e"]
        # What is no text here is none there: an empty piece is a special token.
        pieces = [piece if kind == "t" else b""
                  for piece, kind in zip(session.pieces, session.kinds)]
        info = xgrammar.TokenizerInfo(pieces, vocab_type=xgrammar.VocabType.RAW, vocab_size=size,
                                      stop_token_ids=ends)
        compiler = xgrammar.GrammarCompiler(info)
        for name, source in GRAMMARS.items():
            compiled = compiler.compile_grammar(source)
            for seed in range(walks):
                rng = random.Random(f"{name} {seed}")
                session.compile("gbnf", source)
                matcher = xgrammar.GrammarMatcher(compiled)
                for step in range(60):
                    mask = session.mask()
                    bits = xgrammar.allocate_token_bitmask(1, size)
                    matcher.fill_next_token_bitmask(bits)
                    other = bits.numpy().view(numpy.uint8).reshape(-1)[:len(mask)]
                    ours = numpy.frombuffer(mask, dtype=numpy.uint8)
                    if not numpy.array_equal(ours, other):
                        different = [t for t in session.allowed((ours ^ other).tobytes())]
                        print(f"{model} {name} seed {seed} step {step}: {len(different)} differ: "
                              f"{[(t, session.pieces[t]) for t in different[:5]]}")
                        return 1
                    masks += 1
                    tokens = session.allowed(mask)
                    token = choose(session, tokens, step > 50, rng)
                    if session.kinds[token] == "e":
                        break
                    session.take(token)
                    assert matcher.accept_token(token)
        session.close()
    print(f"{masks} equal masks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
