#!/usr/bin/env node
// Runs the program from this platform's package.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');

function fail(...lines) {
  console.error(`signalbox: ${lines.join('\n')}`);
  process.exit(1);
}

const name = `@signalbox-ai/${process.platform}-${process.arch}`;
const known = require('../package.json').optionalDependencies;
let program;
try {
  program = require.resolve(`${name}/bin/signalbox`);
} catch {
  if (!(name in known)) {
    fail(`there is no program for ${process.platform} on ${process.arch}; there are ${Object.keys(known).join(', ')}.`,
      'Build it from its source: https://github.com/signalbox-ai/signalbox');
  }
  fail(`the package ${name}, which has the program for this platform, is not installed.`,
    'It is an optional dependency: install again without --no-optional and --omit=optional, and not from a node_modules',
    `of another platform. Or add it by name: npm install ${name}@${known[name]}`);
}
const args = process.argv.slice(2);

// If Node.js supports exec, it replaces itself with the program, so that the program
// has its terminal, its signals and its parent directly.
if (process.execve) {
  try {
    fs.accessSync(program, fs.constants.X_OK);
  } catch (err) {
    fail(err.message);
  }
  process.execve(program, [program, ...args], process.env);
}

// A terminal sends these to the program too: forwarding them would deliver them twice.
function terminal() {
  try {
    fs.closeSync(fs.openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
const fromKeys = ['SIGINT', 'SIGQUIT', 'SIGHUP'];
const passed = ['SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', ...fromKeys];

let child;
for (const signal of passed) { // before the program starts and could get them
  process.on(signal, () => {
    if (!(fromKeys.includes(signal) && terminal())) child.kill(signal);
  });
}
child = spawn(program, args, { stdio: 'inherit' });
child.on('error', (err) => fail(err.message));
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  for (const s of passed) process.removeAllListeners(s);
  process.kill(process.pid, signal);
  process.exit(128 + os.constants.signals[signal]); // a signal that does not terminate Node.js
});
