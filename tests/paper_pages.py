"""What the tests of the pages of papers share."""

#: Films, as a file of triples.
WATER_BIRDS = "".join(
    "\t".join(one) + "\n"
    for one in (
        ("Heron", "directed_by", "Ada Finch"),
        ("Plover", "directed_by", "Ada Finch"),
        ("Plover", "starred_actors", "Di Reed"),
        ("Plover", "starred_actors", "Ada Finch"),
        ("Plover", "release_year", "1931"),
        ("Teal", "written_by", "Di Reed"),
    )
)


def cells(text, title, name):
    """Return the means of the row of that name in the first table of a section."""
    section = text.split(f"### {title}")[1].split("\n### ")[0]
    header, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    names = [item.strip() for item in header.strip("|").split("|")]
    (row,) = [row for row in rows if row.split("|")[2].strip() == name]
    return dict(zip(names, (item.strip() for item in row.strip("|").split("|")), strict=True))
