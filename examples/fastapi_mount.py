"""A FastAPI application with a queue of its own: it sends, it consumes, and it serves the queue to
others under /queue.

    uvicorn --app-dir examples fastapi_mount:app
    curl -X POST 'localhost:8000/orders?article=book'
    curl localhost:8000/orders
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

import mqlite

handled: list[str] = []


async def handle(message: mqlite.AsyncDelivery) -> None:
    handled.append(message.text)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    tokens = os.environ.get("QUEUE_TOKENS", "mqk_example").split(",")
    async with await mqlite.open_async(os.environ.get("MQLITE_DB", "shop.db")) as mq:
        await mq.create_queue("orders")
        app.state.mq = mq
        app.mount("/queue", mqlite.asgi(mq, tokens=tokens))
        receiver = mq.receiver("orders", concurrency=8)
        running = asyncio.create_task(receiver.run(handle))
        yield
        receiver.stop()
        await running


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
async def order(article: str, request: Request) -> dict[str, int]:
    return {"seq_number": await request.app.state.mq.send("orders", article)}


@app.get("/orders")
async def orders() -> list[str]:
    return handled
