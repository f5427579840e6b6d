from tests.hub_server import cache, hub  # noqa: F401 (fixtures)
