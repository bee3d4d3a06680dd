"""Prompts of an exact length that no server has seen.

What it does: builds messages whose first words are a nonce, and adds filler words until the server's own tokenizer counts the
asked number of tokens. What it does not do: send anything. Rules kept: the nonce stands before everything else that is ours,
since a prefix cache answers whatever stands before it; filler is drawn from the seed, so that two prompts share no run of
words; the count is of the whole chat, template included.
"""

import random
from collections.abc import Sequence

from ledger.instruments.base import Tokenize
from ledger.instruments.openai.chat import Messages, tag

SHORTEST = 64
_INTERPOLATED = 6
_ASK = "Reply with one word."
# Short common words, one token each with most tokenizers, so that the count moves in small steps.
_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father power "
    "hour game line end member law car city name team minute idea body back parent face others level office door health "
    "person art war history party result change morning reason research girl guy moment air teacher force education foot "
    "boy age policy process music market sense nation plan college interest death experience effect use class control field "
    "paper table"
)
_WORDS = _TEXT.split()
# Small pieces that add one token where a whole word would add two or three.
_PIECES = (" a", " I", " the", ".", "!")


def fit(length: int, *, seed: str, tokenize: Tokenize | None) -> Messages:
    """Messages of ``length`` tokens by ``tokenize``; the nearest below where no words give just that.

    Without ``tokenize`` a word is taken for a token, and the reply's usage will tell how long the prompt was.
    """
    draw = random.Random(seed)
    words = [draw.choice(_WORDS) for _ in range(length)]
    nonce = tag(seed, "nonce")
    if tokenize is None:
        return _messages(nonce, words[: max(1, length - 40)])
    low = _below(length, nonce, words, tokenize)
    said = _messages(nonce, words[:low])
    missing = length - tokenize(said)
    for count in (missing, missing - 1, missing + 1):
        for tail in (piece * count for piece in _PIECES):
            if missing and tokenize(_messages(nonce, words[:low], tail)) == length:
                return _messages(nonce, words[:low], tail)
    return said


def _below(length: int, nonce: str, words: Sequence[str], tokenize: Tokenize) -> int:
    """The most words that keep the prompt within ``length`` tokens: a few steps by interpolation, then by halves."""
    low, high = 0, len(words)
    guess = max(0, length - 40)
    step = 0
    while low < high:
        tokens = tokenize(_messages(nonce, words[:guess]))
        if tokens == length:
            return guess
        low, high = (guess, high) if tokens < length else (low, guess - 1)
        step += 1
        near = guess + (length - tokens) * guess // max(tokens, 1)
        middle = (low + high + 1) // 2
        guess = near if step <= _INTERPOLATED and low < near <= high else middle
    return low


def _messages(nonce: str, words: Sequence[str], tail: str = "") -> Messages:
    return [{"role": "system", "content": nonce}, {"role": "user", "content": f"{' '.join(words)}{tail}\n{_ASK}"}]
