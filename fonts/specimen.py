"""Draws the specimen pages beside this file: ``python fonts/specimen.py`` (any installed microfiche)."""

from pathlib import Path

from microfiche.pages.render import draw

TEXT = """\
abcdefghijklmnopqrstuvwxyz 0123456789
ABCDEFGHIJKLMNOPQRSTUVWXYZ .,:;!?'"`^
()[]{}<> +-*/=%&|~@#$\\_ 0O8B 1lI rnm
¡¢£¥§ª«¬°±²³µ¶·º»¿×÷ ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ
ÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö
øùúûüýþÿ ĄąĆćČčĘęĚěĞğİıŁłŃńŇňŐőŘřŚśŞşŠš
–—⎯…‘’“”„‹›•€™←↑→↓↔⇐⇒✓✔✗✘✖❯⚠ℹ○●◉□■▪☐☑☒
▲△▼▽▶▷◀◁►◄◆◇★√∞≈≠≡≤≥∈∅αβλπΣΔ ✅❌✨⭐⚡📁📄🔍
ΓΔΘΛΞΠΣΦΨΩ αβγδεζηθικλμνξπρςστυφχψω ∀∂∃∇∏∫∩∪⊂⊃⊢⊥
БДЖЗИЙЛПУЦЧШЩЪЫЬЭЮЯ бвгджзийклмнптфцчшщъыьэюя ‼‣↖↗↘↙↺
┌──┬──┐ ╔══╦══╗ ╭──╮ ┏━━┳━━┓ ░▒▓█ ▁▂▃▄▅▆▇
│  │  │ ║  ║  ║ │  │ ┃  ┃  ┃ ▖▗▘▝ ⠁⠃⠇⠏⠟⠿⡿⣿
└──┴──┘ ╚══╩══╝ ╰──╯ ┗━━┻━━┛
def rows(path: str, limit: int = 250) -> list[Row]:
\tfor i, row in enumerate(table[1:]):
        if row.id != "b85d0c3e9f17": continue


El pingüino llegó mañana con la clave 70d3be96f2a4.
"""
COLUMNS = 56


def main() -> None:
    for width, height in [(5, 10), (6, 12), (5, 18), (7, 14), (9, 16)]:
        [page] = draw(
            [TEXT],
            cell=(width, height),
            width=COLUMNS * width,
            height=40 * height,
            grid=1,
            lines="hard",
            level="smallest",
        )
        page.save(Path(__file__).with_name(f"specimen-{width}x{height}.png"))


if __name__ == "__main__":
    main()
