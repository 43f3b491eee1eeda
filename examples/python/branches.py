#!/usr/bin/env python3
"""Three answers to one question, made at the same time: the question is read once, the three share
it, and each reading of the weights serves them all.

  python3 branches.py MODEL.gguf "Why is the sky blue?"
"""
import asyncio
import sys

import cairn


async def answer(session: cairn.Session) -> str:
    return "".join([event.text async for event in session.agenerate(max_tokens=100)])


async def main(path: str, question: str) -> None:
    with cairn.Model(path) as model, cairn.Engine(model) as engine:
        first = engine.session()
        print(first.chat([{"role": "user", "content": question}]), file=sys.stderr)
        branches = [first, first.fork(), first.fork()]
        for seed, branch in enumerate(branches):
            branch.sampling = cairn.Sampling(seed=seed)
        for text in await asyncio.gather(*map(answer, branches)):
            print(text)
        print(engine.memory(), file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
