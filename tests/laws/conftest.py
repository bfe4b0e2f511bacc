"""The laws of one family run one after the other: they share compiled programs, and a worker keeps its own."""


def pytest_collection_modifyitems(items):
    places = [i for i, item in enumerate(items) if "/laws/" in item.nodeid]
    families = {}
    for i in places:
        families.setdefault(_family(items[i]), len(families))
    ordered = sorted((items[i] for i in places), key=lambda item: families[_family(item)])
    for i, item in zip(places, ordered, strict=True):
        items[i] = item


def _family(item):
    return str(item.callspec.params.get("family")) if hasattr(item, "callspec") else ""
