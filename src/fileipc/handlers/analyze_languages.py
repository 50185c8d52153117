"""Languages by file name and interpreter line, with how their comments look."""

from __future__ import annotations

import os
from dataclasses import dataclass

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Language:
    """`line`: what begins a comment to the end of the line; `block`: comments with an end;
    `strings`: texts that may span lines, in which no comment begins; `quotes`: quotes of texts
    within one line. `nested`: block comments may hold block comments."""

    name: str
    mime: str = "text/plain"
    line: tuple[str, ...] = ()
    block: tuple[Pair, ...] = ()
    strings: tuple[Pair, ...] = ()
    quotes: str = ""
    nested: bool = False


_C: tuple[Pair, ...] = (("/*", "*/"),)
_MARKUP: tuple[Pair, ...] = (("<!--", "-->"),)
_TRIPLE: tuple[Pair, ...] = (('"""', '"""'),)
_BACKTICK: tuple[Pair, ...] = (("`", "`"),)
_SLASHES = ("//",)
_HASH = ("#",)


def _c_like(
    name: str,
    mime: str = "text/plain",
    *,
    line: tuple[str, ...] = _SLASHES,
    strings: tuple[Pair, ...] = (),
    quotes: str = "\"'",
    nested: bool = False,
) -> Language:
    return Language(name, mime, line, _C, strings, quotes, nested)


_PYTHON = Language(
    "Python", "text/x-python", _HASH, strings=(*_TRIPLE, ("'''", "'''")), quotes="\"'"
)
_JAVASCRIPT = _c_like("JavaScript", "text/javascript", strings=_BACKTICK)
_SHELL = Language("Shell", "text/x-shellscript", _HASH)
_RUBY = Language("Ruby", "text/x-ruby", _HASH, (("=begin", "=end"),))
_PERL = Language("Perl", "text/x-perl", _HASH, (("=pod", "=cut"), ("=head", "=cut")))
_PHP = _c_like("PHP", "text/x-php", line=("//", "#"))
_MAKE = Language("Makefile", "text/x-makefile", _HASH)
_DOCKER = Language("Dockerfile", line=_HASH)
_CMAKE = Language("CMake", line=_HASH, block=(("#[[", "]]"),))
_YAML = Language("YAML", "application/yaml", _HASH)
_INI = Language("INI", line=("#", ";"))
_LUA = Language("Lua", "text/x-lua", ("--",), (("--[[", "]]"),), (("[[", "]]"),), quotes="\"'")
_LISP = Language("Lisp", line=(";",), block=(("#|", "|#"),), quotes='"', nested=True)
_TEXT = Language("Text")

BY_EXTENSION: dict[str, Language] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), _PYTHON),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx"), _c_like("TypeScript", strings=_BACKTICK)),
    ".go": _c_like("Go", "text/x-go", strings=_BACKTICK),
    ".rs": _c_like("Rust", "text/x-rust", quotes='"', nested=True),
    ".java": _c_like("Java", "text/x-java", strings=_TRIPLE),
    **dict.fromkeys((".c", ".h"), _c_like("C", "text/x-c")),
    **dict.fromkeys(
        (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ino"), _c_like("C++", "text/x-c++")
    ),
    ".cs": _c_like("C#", strings=_TRIPLE),
    **dict.fromkeys((".m", ".mm"), _c_like("Objective-C")),
    **dict.fromkeys((".kt", ".kts"), _c_like("Kotlin", strings=_TRIPLE, nested=True)),
    ".swift": _c_like("Swift", strings=_TRIPLE, quotes='"', nested=True),
    **dict.fromkeys((".scala", ".sc"), _c_like("Scala", strings=_TRIPLE, nested=True)),
    ".dart": _c_like("Dart", strings=(*_TRIPLE, ("'''", "'''")), nested=True),
    **dict.fromkeys((".groovy", ".gradle"), _c_like("Groovy", strings=_TRIPLE)),
    ".php": _PHP,
    ".proto": _c_like("Protocol Buffers"),
    ".zig": Language("Zig", line=_SLASHES),
    **dict.fromkeys((".rb", ".rake", ".gemspec"), _RUBY),
    **dict.fromkeys((".pl", ".pm"), _PERL),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".bats"), _SHELL),
    ".fish": Language("Fish", line=_HASH),
    **dict.fromkeys(
        (".ps1", ".psm1", ".psd1"), Language("PowerShell", line=_HASH, block=(("<#", "#>"),))
    ),
    **dict.fromkeys((".bat", ".cmd"), Language("Batch", line=("::", "rem ", "REM ", "@rem "))),
    ".lua": _LUA,
    ".r": Language("R", "text/x-r", _HASH),
    ".jl": Language("Julia", line=_HASH, block=(("#=", "=#"),), strings=_TRIPLE, nested=True),
    **dict.fromkeys(
        (".hs", ".lhs"), Language("Haskell", line=("--",), block=(("{-", "-}"),), nested=True)
    ),
    **dict.fromkeys(
        (".ml", ".mli"), Language("OCaml", block=(("(*", "*)"),), quotes='"', nested=True)
    ),
    **dict.fromkeys(
        (".fs", ".fsx"), Language("F#", line=_SLASHES, block=(("(*", "*)"),), strings=_TRIPLE)
    ),
    **dict.fromkeys((".ex", ".exs"), Language("Elixir", line=_HASH, strings=_TRIPLE)),
    **dict.fromkeys((".erl", ".hrl"), Language("Erlang", line=("%",))),
    **dict.fromkeys((".clj", ".cljs", ".cljc"), Language("Clojure", line=(";",), quotes='"')),
    **dict.fromkeys((".lisp", ".el", ".scm", ".rkt"), _LISP),
    ".nim": Language("Nim", line=_HASH, block=(("#[", "]#"),), strings=_TRIPLE, nested=True),
    ".nix": Language("Nix", line=_HASH, block=_C, strings=(("''", "''"),), quotes='"'),
    **dict.fromkeys((".tf", ".hcl"), _c_like("HCL", line=("#", "//"), quotes='"')),
    ".sql": Language("SQL", "application/sql", ("--",), _C, quotes="\"'"),
    ".graphql": Language("GraphQL", line=_HASH, strings=_TRIPLE),
    **dict.fromkeys((".asm", ".s"), Language("Assembly", line=(";", "#", "//"), block=_C)),
    **dict.fromkeys((".html", ".htm", ".xhtml"), Language("HTML", "text/html", block=_MARKUP)),
    **dict.fromkeys(
        (".xml", ".xsd", ".xsl", ".xslt"), Language("XML", "application/xml", block=_MARKUP)
    ),
    ".svg": Language("SVG", "image/svg+xml", block=_MARKUP),
    ".vue": Language("Vue", line=_SLASHES, block=(*_MARKUP, *_C), strings=_BACKTICK),
    ".svelte": Language("Svelte", line=_SLASHES, block=(*_MARKUP, *_C), strings=_BACKTICK),
    ".css": _c_like("CSS", "text/css", line=()),
    ".scss": _c_like("SCSS"),
    ".less": _c_like("Less"),
    **dict.fromkeys((".md", ".markdown"), Language("Markdown", "text/markdown", block=_MARKUP)),
    ".rst": Language("reStructuredText", "text/x-rst"),
    ".tex": Language("TeX", "text/x-tex", ("%",)),
    **dict.fromkeys((".json", ".ipynb", ".geojson"), Language("JSON", "application/json")),
    **dict.fromkeys((".jsonl", ".ndjson"), Language("JSON lines", "application/x-ndjson")),
    **dict.fromkeys((".yaml", ".yml"), _YAML),
    ".toml": Language("TOML", "application/toml", _HASH),
    **dict.fromkeys((".ini", ".cfg", ".conf", ".properties", ".editorconfig"), _INI),
    ".csv": Language("CSV", "text/csv"),
    ".tsv": Language("TSV", "text/tab-separated-values"),
    ".cmake": _CMAKE,
    ".mk": _MAKE,
    ".dockerfile": _DOCKER,
    **dict.fromkeys((".txt", ".text", ".log"), _TEXT),
}

BY_NAME: dict[str, Language] = {
    **dict.fromkeys(("makefile", "gnumakefile"), _MAKE),
    **dict.fromkeys(("dockerfile", "containerfile"), _DOCKER),
    "cmakelists.txt": _CMAKE,
    **dict.fromkeys(("rakefile", "gemfile", "vagrantfile", "podfile"), _RUBY),
    **dict.fromkeys((".bashrc", ".bash_profile", ".profile", ".zshrc", "pkgbuild"), _SHELL),
    **dict.fromkeys((".gitignore", ".dockerignore", ".gitattributes", ".env"), _INI),
    ".gitconfig": _INI,
}

BY_INTERPRETER: dict[str, Language] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "ash"), _SHELL),
    **dict.fromkeys(("python", "pypy"), _PYTHON),
    **dict.fromkeys(("node", "nodejs", "deno", "bun"), _JAVASCRIPT),
    "ruby": _RUBY,
    "perl": _PERL,
    "php": _PHP,
    "lua": _LUA,
    "make": _MAKE,
}


def language_of(name: str, head: bytes) -> Language | None:
    """The language of a text file, by its name, else by its interpreter line."""
    lower = name.lower()
    found = BY_NAME.get(lower) or BY_EXTENSION.get(os.path.splitext(lower)[1])
    return found or _by_interpreter(head)


def _by_interpreter(head: bytes) -> Language | None:
    if not head.startswith(b"#!"):
        return None
    words = head[2:256].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    names = [os.path.basename(word) for word in words if not word.startswith("-")]
    if names[:1] == ["env"]:
        names = [name for name in names[1:] if "=" not in name]
    if not names:
        return None
    return BY_INTERPRETER.get(names[0].rstrip("0123456789."))
