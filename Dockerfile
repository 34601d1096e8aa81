# Stormproof on a CPU, as an ordinary user:
#   docker build -t stormproof .
#   docker run --rm -v "$PWD:/work" stormproof run --model onnx:model.onnx --data world:val --conditions imagenet-c --out runs/mine
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build==1.3.0 \
 && python -m build --wheel --outdir /wheels . \
 && python -m build --wheel --outdir /wheels networks

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl \
 && rm -rf /wheels \
 && useradd --create-home --uid 1000 storm
USER 1000
WORKDIR /work
# Kernels are compiled on first use and kept here.
ENV NUMBA_CACHE_DIR=/home/storm/.cache/numba
ENTRYPOINT ["stormproof"]
CMD ["--help"]
