module github.com/signalbox-ai/signalbox

go 1.26
