"""Glassbox, the app. Streamlit's server imports this file, and each session runs it."""

from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from ui.own_server import OwnAddresses, imported, importing

if __name__ == "__main__":
    imported()
    from ui.frame import main

    main()
else:
    app = App(Path(__file__), lifespan=importing, middleware=[Middleware(OwnAddresses)])
