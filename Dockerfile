# An image of memspan, and what a job needs to run. In the root of the sources:
#
#   docker build -t memspan .
#   docker run --rm memspan                                # multiplies matrices on two processes
#   docker run --rm memspan memspan-info
#   docker run --rm memspan oshrun -n 4 PROGRAM            # a program that was added to the image

FROM debian:bookworm-slim AS build
WORKDIR /src
# A layer of its own: it changes seldom.
COPY scripts/install_deps.sh scripts/
COPY scripts/support/progress.sh scripts/support/
RUN bash scripts/install_deps.sh --examples
COPY . .
# The README's first command: it builds, multiplies on two processes and verifies.
RUN bash examples/matmul_allreduce/scripts/run.sh -ranks 2 -M 1024 -K 2048 -N 8192
RUN cmake --build build \
 && cmake --install build --prefix /opt/memspan \
 && install -s build/bin/matmul_allreduce /opt/memspan/bin/ \
 && strip --strip-unneeded /opt/memspan/lib/libmemspan*.so /opt/memspan/bin/memspan-* /opt/memspan/bin/oshrun

FROM debian:bookworm-slim
# OpenSSL and the C++ runtime for the library, OpenBLAS and oneDNN for the program. The tag of the image says
# their versions.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libssl3 libstdc++6 libopenblas0-pthread libdnnl2 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/memspan /opt/memspan
ENV PATH=/opt/memspan/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LD_LIBRARY_PATH=/opt/memspan/lib
USER 10001:10001
CMD ["oshrun", "-n", "2", "matmul_allreduce", "-M", "1024", "-K", "2048", "-N", "8192"]
