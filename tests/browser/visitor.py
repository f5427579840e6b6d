"""A visitor of the running app without a browser: it speaks Streamlit's WebSocket protocol.

It sends what a browser would, and has every byte that the server sent it in `Visitor.received`.
"""

from contextlib import ExitStack, closing
from socket import create_connection
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

PATIENCE_S = 300  # what is there sooner is not waited for
MAX_BYTES = 200_000_000  # of a message
FINISHED = ForwardMsg.FINISHED_SUCCESSFULLY


class Visitor:
    """A session of the app at an address, which the browser knows by the name of a host.

    `run` runs a page, as after a click, and returns once it is drawn; `elements` are those with a label or a
    text, by their type and label.
    """

    def __init__(self, url, host=None, origin=None):
        self.url, self.received, self.is_found = url, b"", True
        self.session, self.address, self.page, self.elements, self.state = "", "", "", {}, {}
        place = urlsplit(url)
        connection = connect(
            f"ws://{host or place.netloc}/_stcore/stream",
            sock=create_connection((place.hostname, place.port)),  # whatever the name of the host
            origin=origin,
            max_size=MAX_BYTES,
        )
        with ExitStack() as stack:
            self.socket = stack.enter_context(connection)
            self.close = stack.pop_all().close

    def open(self, address="", query=""):
        """Open a page by its address, as one who follows a link to it does."""
        self.address, self.page, self.state = address, "", {}
        self.is_found = True
        shown = self.run(query)
        if not self.is_found:  # a server leads its first visitor to the address once more
            self.page = ""
            shown = self.run(query)
        return shown

    def run(self, query="", **values):
        """Run the page with the values of widgets, by their labels or keys; return what it shows."""
        triggers = {}
        for label, value in values.items():
            widget = self.find(label)
            (triggers if value is None else self.state)[widget.id] = widget_state(widget, value)
        message = BackMsg()
        client = message.rerun_script
        client.query_string, client.page_script_hash, client.page_name = query, self.page, self.address
        client.context_info.url = self.url
        client.widget_states.widgets.extend([*self.state.values(), *triggers.values()])
        self.socket.send(message.SerializeToString())
        return self.wait()

    def wait(self):
        """Read until the page is drawn, and return all of what was sent meanwhile as text."""
        start = len(self.received)
        while True:
            content = self.socket.recv(timeout=PATIENCE_S)
            self.received += content
            message = ForwardMsg.FromString(content)
            if self.take(message):
                return self.received[start:].decode("utf-8", "replace")

    def take(self, message):
        """Take a message in; return whether it says that the run has ended."""
        match message.WhichOneof("type"):
            case "batch":
                taken = [self.take(one) for one in message.batch.messages]
                return any(taken)
            case "new_session":
                self.session = message.new_session.initialize.session_id
                self.page = message.new_session.page_script_hash or self.page
                self.elements = {}
            case "page_not_found":
                self.is_found = False
            case "navigation":
                self.page = message.navigation.page_script_hash or self.page
            case "delta" if message.delta.WhichOneof("type") == "new_element":
                kind = message.delta.new_element.WhichOneof("type")
                element = getattr(message.delta.new_element, kind)
                self.elements[kind, getattr(element, "label", ""), getattr(element, "id", "")] = element
            case "script_finished":
                return message.script_finished == FINISHED
        return False

    def find(self, label):
        """Return the element with a label, or with a key, which is at the end of its id."""
        for (_, found, name), element in self.elements.items():
            if found == label or name.endswith(f"-{label}"):
                return element
        raise LookupError(f"no {label}: {sorted({key[1] for key in self.elements} - {''})}")


def widget_state(widget, value):
    """Return the state of a widget with a value; None presses a button."""
    state = WidgetState(id=widget.id)
    match value:
        case None:
            state.trigger_value = True
        case bool():
            state.bool_value = value
        case str():
            state.string_value = value
        case int() | float():
            state.double_array_value.data.append(value)
        case list():
            state.string_array_value.data.extend(value)
    return state


def visiting(url, host=None, origin=None):
    """A visitor until the end of a block."""
    return closing(Visitor(url, host, origin))
