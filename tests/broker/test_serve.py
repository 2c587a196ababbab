"""Starting and stopping."""

from __future__ import annotations

import errno
import http.client
import logging
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing

import pytest

from broker.support import TOKEN, Api, address, connect, post_bytes, read_all
from mqlite.broker import server
from mqlite.broker.limits import Timeouts
from mqlite.broker.serve import serve, serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.errors import InvalidArgument

SERVE = """
import sys
from mqlite.broker.serve import serve
import mqlite

mq = mqlite.open(sys.argv[1])
serve(mq, "127.0.0.1:0", tokens="off", ready=lambda url: print(url, flush=True))
mq.close()
print("closed", flush=True)
"""


def broker_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mqlite-broker"]


def test_serving_ends_with_its_block(mq: Embedded) -> None:
    before = broker_threads()
    with serving(mq, tokens=[TOKEN]) as url:
        assert Api(url).request("GET", "/healthz").status == 200
    with pytest.raises(ConnectionRefusedError):
        connect(url)
    assert broker_threads() == before
    with serving(mq, tokens=[TOKEN]) as url:
        assert Api(url).request("GET", "/healthz").status == 200


def test_an_error_inside_the_block_is_not_hidden(mq: Embedded) -> None:
    with pytest.raises(ZeroDivisionError), serving(mq, tokens=[TOKEN]):
        raise ZeroDivisionError


def test_idle_connections_do_not_hold_up_the_stop(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN]) as url:
        idle = http.client.HTTPConnection(*address(url))
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        half = connect(url)
        half.sendall(b"GET /")
    assert read_all(half) == b""
    half.close()
    idle.close()


def test_a_request_that_is_being_read_is_finished_before_the_stop(mq: Embedded) -> None:
    sent = post_bytes("CreateQueue", b'{"name":"late"}')
    stop = threading.Event()
    stopped = threading.Event()
    urls: list[str] = []
    up = threading.Event()

    def run() -> None:
        with serving(mq, tokens=[TOKEN]) as url:
            urls.append(url)
            up.set()
            stop.wait(60)
        stopped.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert up.wait(60)
    with connect(urls[0]) as connection:
        connection.sendall(sent[:-1])
        assert Api(urls[0]).request("GET", "/healthz").status == 200
        stop.set()
        connection.sendall(sent[-1:])
        answer = read_all(connection)
    thread.join()
    assert answer.startswith(b"HTTP/1.1 200") or b'"unavailable"' in answer
    assert stopped.is_set()


def test_what_does_not_finish_in_time_is_ended(mq: Embedded) -> None:
    timeouts = Timeouts(grace=0.2)
    with serving(mq, tokens=[TOKEN], timeouts=timeouts) as url:
        stuck = connect(url)
        stuck.sendall(post_bytes("Stats", b"12345")[:-1])
        assert Api(url).request("GET", "/healthz").status == 200
    stuck.close()


@pytest.mark.parametrize("second", [False, True])
def test_a_signal_ends_polls_and_the_process_with_success(tmp_path: object, second: bool) -> None:
    command = [sys.executable, "-c", SERVE, f"{tmp_path}/mq.db"]
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(process.kill)
        assert process.stdout is not None
        api = Api(process.stdout.readline().strip(), None)
        api.ok("CreateQueue", name="q")
        poll = stack.enter_context(connect(api.url))
        poll.sendall(post_bytes("Receive", b'{"queue":"q","wait_time_ms":20000}'))
        stuck = stack.enter_context(connect(api.url))
        if second:
            stuck.sendall(post_bytes("Stats", b"12345")[:-1])
        assert api.ok("Stats", queue="q")["total"] == 0
        process.terminate()
        assert read_all(poll).endswith(b'{"messages":[]}\n')
        if second:
            process.terminate()
            assert read_all(stuck) == b""
        assert process.stdout.read() == "closed\n"
        assert process.wait(60) == 0


def test_serve_returns_when_the_queue_is_closed(
    mq: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqlite.broker")
    served: list[str] = []

    def ready(url: str) -> None:
        served.append(url)
        mq.close()

    serve(mq, "127.0.0.1:0", tokens="off", ready=ready)
    assert served[0].startswith("http://127.0.0.1:")
    told = [record for record in caplog.records if record.name == "mqlite.broker"]
    assert [record.getMessage() for record in told] == [
        f"broker started on {served[0].removeprefix('http://')}",
        "broker stopping: the queue is closed",
        "broker stopped",
    ]


def test_the_end_of_a_block_is_told_as_such(mq: Embedded, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqlite.broker")
    with serving(mq, tokens=[TOKEN]):
        pass
    assert "broker stopping: asked to by the program" in caplog.messages


def test_an_address_that_is_taken_is_a_clean_error(mq: Embedded) -> None:
    with closing(server.bind("127.0.0.1:0")) as listener:
        addr = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {addr}: ") as caught:
            serve(mq, addr, tokens="off")
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize(
    "addr", ["", "localhost", "6754", "h:", "h:x", "h:-1", "h:65536", "::1:80", "h:٣"]
)
def test_text_that_is_no_address(mq: Embedded, addr: str) -> None:
    with pytest.raises(InvalidArgument, match="addr must be host:port"):
        serve(mq, addr, tokens="off")


def test_an_unknown_host_is_a_clean_error() -> None:
    with pytest.raises(OSError, match=r"cannot listen on no\.such\.host\.invalid:1: "):
        server.bind("no.such.host.invalid:1")


@pytest.mark.parametrize("addr", [":0", "0.0.0.0:0"])
def test_no_authentication_is_for_this_machine_only(mq: Embedded, addr: str) -> None:
    with pytest.raises(InvalidArgument, match="without authentication"):
        serve(mq, addr, tokens="off")
    with serving(mq, addr, tokens="off", insecure_allow_remote=True) as url:
        assert url.startswith("http://127.0.0.1:")
        assert Api(url, None).request("GET", "/healthz").status == 200
    with serving(mq, addr, tokens=[TOKEN]) as url:
        assert Api(url).request("GET", "/healthz").status == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6(mq: Embedded, clock: ManualClock) -> None:
    try:
        server.bind("[::1]:0").close()
    except OSError:
        pytest.skip("no IPv6 loopback")
    with serving(mq, "[::1]:0", tokens="off") as url:
        assert url.startswith("http://[::1]:")
        assert Api(url, None).request("GET", "/healthz").status == 200
