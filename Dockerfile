# Popple in a container: programs for IPUs run and are modelled, without any hardware.
#
#   docker build -t popple .
#   docker run --rm popple                        the demo: trains, models, reports
#   docker run --rm -it popple bash               a shell with popple, gc-info, ...
#   gc-docker -- --rm -it popple bash             the same on the IPUs of the host

FROM python:3.11-slim

# What `make env` installs but for the tools of development; scikit-learn has the data of
# the demo. PyTorch's own index has builds without CUDA, a tenth of the size.
WORKDIR /opt/popple
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY examples ./examples
RUN pip install --no-cache-dir --disable-pip-version-check \
      --extra-index-url https://download.pytorch.org/whl/cpu \
      -c constraints.txt '.[torch]' scikit-learn

# Programs are run as a user, who may write to /work and to temporary files.
RUN useradd --create-home --uid 1000 popple && mkdir /work && chown popple /work
USER popple
WORKDIR /work

CMD ["sh", "-c", "popple run --report build/demo /opt/popple/examples/digits_cnn.py && popple report build/demo"]
