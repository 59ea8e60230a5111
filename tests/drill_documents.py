"""A report that the tests of drilling share, and texts on several subjects."""

from clew.core.types import Table

FLEET = Table(
    ("ship", "built", "tonnes"),
    (("Petrel", "1871", "210"), ("Gannet", "1884", "345"), ("Auk", "1890", "120")),
    "Ships of the line",
)
REPORT = (
    "lighters.txt",
    "The Tolland lighters",
    "This report tells of the lighters that served Tolland harbour until 1931.",
    ("heading", 1, "History"),
    "The first lighter was built at the yard of Osk Brothers in 1871. It carried coal from the "
    "colliers to the quay. Two more followed before the century ended. Their crews lived ashore.",
    ("heading", 2, "Owners"),
    "The Tolland Coal Company owned them all. Its director was Maria Hale, who had them painted red.",
    ("heading", 2, "Crews"),
    "Each had a crew of three: a skipper, a mate and a boy.",
    ("heading", 1, "Fleet"),
    "The table lists every ship with its year and its burden.",
    FLEET,
    ("heading", 1, "End"),
    ("heading", 2, "Owners"),
    "In 1931 the company was sold to Brandt and the lighters were broken up.",
)
NOTES = (
    "bridges.txt",
    "Bridges of the Osk",
    ("heading", 1, "Upper bridge"),
    "The upper bridge was opened in 1902 and has four arches of granite.",
    ("heading", 1, "Lower bridge"),
    "The lower bridge is a swing bridge that lets sailing barges pass; a keeper turns it by hand.",
)
SUBJECTS = (
    "The honey bee gathers nectar and the hive stores honey. Worker bees tend the queen bee in the hive.",
    "Bees dance in the hive to tell where nectar is. The beekeeper harvests honey from the hive in summer.",
    "A swarm of bees leaves the hive with the old queen. Honey feeds the hive through winter.",
    "The volcano erupted and lava flowed. Ash from the volcano fell for days and magma rose.",
    "Lava cools to basalt. Magma below the volcano drives each eruption, and ash covers the slopes.",
    "An eruption of the volcano sends ash into the air while lava destroys the slopes.",
    "The violin has four strings and a bow. The orchestra tunes to the oboe before the concert.",
    "A concert for violin and orchestra needs a conductor. The bow draws sound from the strings.",
    "The orchestra rehearses the concert; violin strings break, and the bow is rosined.",
)
