"""Requests an adversary sent: each of these once cost the broker more than its sender."""

from __future__ import annotations

from .support import TOKEN, Api, path_of

MIB = 1024 * 1024


def test_a_request_of_many_small_objects_is_refused_before_it_is_decoded(shared_api: Api) -> None:
    messages = b",".join([b"{}"] * 500_000)
    body = b'{"queue":"q","messages":[' + messages + b"]}"
    reply = shared_api.post("Send", body)
    assert (reply.status, reply.code) == (413, "message_too_large")


def test_a_large_request_of_few_objects_is_served(api: Api) -> None:
    api.ok("CreateQueue", name="q")
    seqs = api.ok("Send", queue="q", messages=[{"subject": "x" * 2 * MIB}])["seq_numbers"]
    assert len(seqs) == 1


def test_blanks_around_a_header_value_do_not_count(shared_api: Api) -> None:
    headers = {"Authorization": f"Bearer {TOKEN} \t"}
    assert shared_api.request("POST", path_of("Status"), b"", headers).status == 200
    headers = {"Authorization": f"Bearer {TOKEN}x"}
    assert shared_api.request("POST", path_of("Status"), b"", headers).status == 401
