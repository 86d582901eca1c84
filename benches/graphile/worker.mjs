// What the bench runs of graphile-worker: `node worker.mjs <what> <database> …`, see `usage`.

import { makeWorkerUtils, run, WorkerPreset } from "graphile-worker";

const usage = `migrate <url>                               makes the tables
drain <warm-up url> <jobs> <url> <jobs>     works off both, one after the other; says how many nanoseconds the second took
starts <url> plain|batching                 says when each job starts, until its input ends`;

// Jobs are claimed by the thousand and completed together.
const batching = { localQueue: { size: 2000 }, completeJobBatchDelay: 5 };

function preset(connectionString, concurrentJobs, how) {
  // As many connections as its manual recommends; it opens those that it uses.
  const maxPoolSize = Math.max(10, concurrentJobs + 2);
  return { extends: [WorkerPreset], worker: { connectionString, concurrentJobs, maxPoolSize, ...how } };
}

// From the start of the first job until all are done, that is, deleted: the stop sends what its batches still hold.
async function drain(url, total) {
  let begun;
  let left = total;
  let allRun;
  const finished = new Promise((resolve) => (allRun = resolve));
  const nothing = async () => {
    begun ??= process.hrtime.bigint();
    if (--left === 0) allRun();
  };
  const runner = await run({ preset: preset(url, 100, batching), taskList: { nothing }, noHandleSignals: true });
  await finished;
  await runner.stop();
  return process.hrtime.bigint() - begun;
}

async function starts(url, how) {
  const nothing = async () => {
    const now = process.hrtime.bigint();
    process.stdout.write(`${now}\n`);
  };
  const settings = how === "batching" ? preset(url, 100, batching) : preset(url, 10, {});
  const runner = await run({ preset: settings, taskList: { nothing }, noHandleSignals: true });
  for await (const _ of process.stdin);
  await runner.stop();
}

const [what, ...given] = process.argv.slice(2);
if (what === "migrate") {
  const utils = await makeWorkerUtils({ connectionString: given[0] });
  await utils.migrate();
  await utils.release();
} else if (what === "drain") {
  // A process that has run for a while is fast, one that has just begun is not yet compiled.
  await drain(given[0], Number(given[1]));
  process.stdout.write(`${await drain(given[2], Number(given[3]))}\n`);
} else if (what === "starts") {
  await starts(given[0], given[1]);
} else {
  console.error(usage);
  process.exit(2);
}
