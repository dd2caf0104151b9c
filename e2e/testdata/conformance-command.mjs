// A command tool for the scenarios about tasks of the conformance suite.
// Argument: which of its tools this is. Its input is one line of JSON.
import { readFileSync } from "node:fs";

const [tool] = process.argv.slice(2);
const { input } = JSON.parse(readFileSync(0, "utf8"));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

switch (tool) {
  case "greet":
    process.stdout.write(`Hello, ${input.name}!`);
    break;
  case "slow_compute":
    await sleep(1000 * (input.seconds ?? 0));
    process.stdout.write(`computed ${input.label ?? ""}`);
    break;
  case "failing_job":
    await sleep(200);
    process.stderr.write("the job failed");
    process.exitCode = 1;
    break;
  case "protocol_error_job": // it runs into its time limit, which is no answer of the tool
    await sleep(60_000);
    break;
  default:
    process.stdout.write("done without a question");
}
