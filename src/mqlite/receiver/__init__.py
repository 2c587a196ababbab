"""The hands-off consumer: it claims, renews leases and settles; handlers do the work.

Where to look, from the outside in:

- `workers`: handlers declared by queue; `receivers`: what `mq.receiver` returns; `options` of
  both; `together` and `signals`: how runs begin and end.
- `running`: one run, made of `polling` (claims), `handlers` (threads and tasks), `leases`
  (renewal, and the watch over lost ones) and `settling`, each on threads of its own. `ledger`
  knows what is held by whom.
- `jobs`: one delivery, and the message that its handler is given; `payloads`: its body as a
  value. `outcomes`: what handlers answer; `verdicts`: what that, or a failure, means.
- `reports`: counts and errors for the user. `failures`: which pass; `waiting`: until when.
"""
