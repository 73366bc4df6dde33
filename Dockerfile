# The executable in an image without a shell, a package manager or anything else but the C library:
#   docker build -t tds --build-arg TDS_COMMIT=$(git rev-parse --short=12 HEAD) .
# For NVIDIA's devices, on NVIDIA's runtime image (cuBLAS and the CUDA runtime), started with --gpus all:
#   docker build -t tds:cuda --build-arg VARIANT=cuda .
# Either way, with a root that nothing can write to. Docker kills after 10 s what it stops, while that takes --drain-delay
# (5 s here) and requests in flight may take --drain-seconds (120):
#   docker run --rm --read-only -v tds-data:/data -v tds-cache:/cache tds init
#   docker run -d --name tds --read-only -v tds-data:/data -v tds-cache:/cache -p 8080:8080 --stop-timeout 135 tds
#   docker exec tds tds doctor
ARG VARIANT=cpu
ARG TDS_COMMIT=unknown

FROM oven/bun:1.4.4 AS bun

FROM debian:12-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ ca-certificates \
 && rm -rf /var/lib/apt/lists/*
COPY --from=bun /usr/local/bin/bun /usr/local/bin/bun
WORKDIR /build
COPY package.json bun.lock bunfig.toml ./
RUN bun install --frozen-lockfile --production
COPY . .
ARG VARIANT
ARG TDS_COMMIT
RUN TDS_COMMIT="$TDS_COMMIT" bun run build $([ "$VARIANT" = cuda ] && echo --cuda)
# The executable under one name, the archive for CUDA beside it, and folders of the user that it runs as.
RUN mkdir -p /image/usr/local/bin /image/etc /image/tmp /folders/data /folders/cache \
 && for file in dist/tds-*; do \
      case "$file" in *.tar.zst) cp "$file" /image/usr/local/bin/ ;; *) cp "$file" /image/usr/local/bin/tds ;; esac; \
    done \
 && echo 'tds:x:65532:65532:tds:/cache:/usr/sbin/nologin' > /image/etc/passwd \
 && echo 'tds:x:65532:' > /image/etc/group \
 && chown 65532:65532 /folders/data /folders/cache \
 && chmod 700 /folders/data /folders/cache \
 && chmod 1777 /image/tmp
# The C library's files, as the executable names them.
RUN mkdir /libc \
 && ldd /image/usr/local/bin/tds | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | xargs -I{} cp -L --parents {} /libc

FROM scratch AS cpu
COPY --from=build /libc/ /
COPY --from=build /image/ /
COPY --from=build /folders/ /

FROM nvidia/cuda:12.9.1-runtime-ubuntu24.04 AS cuda
COPY --from=build /image/usr/ /usr/
COPY --from=build /folders/ /

FROM ${VARIANT}
ARG TDS_COMMIT
LABEL org.opencontainers.image.title="tds" \
      org.opencontainers.image.description="Typed Decision Service: probabilities for typed questions about one record, from a local language model" \
      org.opencontainers.image.revision="$TDS_COMMIT"
# A backup of a large database is audited with temporary files of SQLite. A read-only root has no other place for them.
ENV TDS_DATA=/data TDS_CACHE=/cache TDS_HOST=0.0.0.0 TDS_DRAIN_DELAY=5 SQLITE_TMPDIR=/data
USER 65532:65532
VOLUME ["/data", "/cache"]
EXPOSE 8080
STOPSIGNAL SIGTERM
# Only whether it answers: a container that lacks its database or disk is not helped by being replaced.
HEALTHCHECK --interval=30s --timeout=10s --start-period=2m CMD ["/usr/local/bin/tds", "health", "--live"]
ENTRYPOINT ["/usr/local/bin/tds"]
CMD ["serve"]
