"""Glassbox, the app. Streamlit's server imports this file, and each session runs it."""

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from engine.kernels.primitives import prepare_compiled
from engine.memory import bound_freed_memory
from ui.own_server import OwnAddresses, imported, importing
from ui.server_settings import is_public

if __name__ == "__main__":
    imported()
    from ui.frame import main

    main()
else:
    bound_freed_memory(is_small=is_public())
    if is_public():
        prepare_compiled(apart=True)
    app = App(Path(__file__), lifespan=importing, middleware=[Middleware(OwnAddresses)])
