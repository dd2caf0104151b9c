# A static binary in an empty image: no shell, no package manager.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /signalbox ./cmd/signalbox
RUN mkdir /data && chown 65532:65532 /data && chmod 700 /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /signalbox /signalbox
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
# The director makes a token with every right at its first start, in /data/token
# (docker cp CONTAINER:/data/token .); or pass one of your own:
#   docker run -e SIGNALBOX_TOKEN=… -p 127.0.0.1:8080:8080 -v signalbox:/data signalbox
ENV SIGNALBOX_ADDR=0.0.0.0:8080 SIGNALBOX_DATA=/data SIGNALBOX_HOME=/data
ENTRYPOINT ["/signalbox"]
CMD ["director"]
