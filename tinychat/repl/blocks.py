'''Prompts of several lines between `"""`.'''

BLOCK = '"""'


def unblock(text: str) -> str:
    '''Takes the marks off a `"""` block, with the new lines next to them; a block is a prompt, whatever is in it.'''
    if not text.startswith(BLOCK):
        return text
    inner = text.removeprefix(BLOCK)
    if inner.rstrip().endswith(BLOCK):
        inner = inner.rstrip().removesuffix(BLOCK)
    inner = inner.removeprefix("\n").removesuffix("\n")
    return "/" + inner if inner.startswith("/") else inner


def is_open_block(text: str) -> bool:
    '''Whether a `"""` block has begun and not ended.'''
    return text.startswith(BLOCK) and not text.removeprefix(BLOCK).rstrip().endswith(BLOCK)
