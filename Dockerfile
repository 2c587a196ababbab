# The broker, without compiler, pip cache or root. Python and SQLite are those the tests run on
# (Debian 12: Python 3.11, SQLite 3.40). docs/deployment.md tells how to run it.

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/mqlite
RUN /opt/mqlite/bin/pip install --quiet --no-cache-dir --disable-pip-version-check '.[broker]'
RUN /opt/mqlite/bin/pip uninstall --quiet --yes --disable-pip-version-check setuptools pip

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --user-group --no-create-home mqlite \
    && install --directory --owner=mqlite --group=mqlite --mode=0700 /data
COPY --from=build /opt/mqlite /opt/mqlite
ENV PATH=/opt/mqlite/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MQLITE_DB=file:/data/mq.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 6754
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:6754/healthz', timeout=4)"]
ENTRYPOINT ["mqlite"]
CMD ["serve", "--addr", ":6754"]
