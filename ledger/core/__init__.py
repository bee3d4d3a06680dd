"""Ground floor: the words everyone uses, errors, canonical bytes, digests, metrics, clocks. Imports attrs, orjson and rfc8785."""
