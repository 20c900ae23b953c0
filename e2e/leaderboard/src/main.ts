/** `npm run leaderboard`: trains what is not stored yet, repeats stored rows on another device, writes the page. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { init, OptError } from "@opt/core";
import { type Cell, cellKey, cellOf, cellsOf, firstRow, measuredCells } from "./cells";
import { entrants } from "./entrants";
import { GUIDE_FILE, guideOf } from "./guide";
import { PAGE_FILE, pageOf, REPEATABLE_FILE, repeatableOf } from "./page";
import { runsLeft, SEEDS, wantedRuns } from "./plan";
import { trainAll } from "./pool";
import { Progress } from "./progress";
import { appendRow, keyOf, readRows } from "./rows";
import { tasks } from "./tasks";

const HELP = `npm run leaderboard -- [options]

Trains every optimizer on every task, and stores each run in e2e/leaderboard/rows.jsonl. A run that is stored is not trained again.

  --task NAMES        of ${Object.keys(tasks).join(", ")}, with commas
  --optimizer NAMES   with semicolons, as in the table
  --seeds NUMBER      seeds at the best learning rate (default ${SEEDS})
  --jobs NUMBER       processes (default 2)
  --device NAME       js, wasm or cpu (default cpu)
  --repeat            trains the table's rows of seed 0 again, and compares checksums: 1 where one differs
  --times             the same, and stores the times
  --write             writes the pages of the site from the stored rows, without training
`;

const { values: given } = parseArgs({
  options: {
    task: { type: "string", default: Object.keys(tasks).join() },
    optimizer: { type: "string", default: entrants.map(({ name }) => name).join(";") },
    seeds: { type: "string", default: String(SEEDS) },
    jobs: { type: "string", default: "2" },
    device: { type: "string", default: "cpu" },
    repeat: { type: "boolean", default: false },
    times: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (given.help) console.log(HELP);
else {
  const seeds = Number(given.seeds);
  const jobs = Number(given.jobs);
  const [onlyTasks, only] = [given.task.split(","), given.optimizer.split(";")];
  const cells = cellsOf(readRows().values()).filter(
    ({ of: { task, optimizer } }) => onlyTasks.includes(task) && only.includes(optimizer),
  );
  if (given.repeat || given.times) await repeat(cells, given.device, jobs, given.times);
  else if (!given.write) await trainMissing(cells, seeds, given.device, jobs);
  if (given.write) write();
}

async function trainMissing(cells: readonly Cell[], seeds: number, device: string, jobs: number): Promise<void> {
  const running = new Set<string>();
  const progress = new Progress();
  const left = () => cells.reduce((sum, { rows }) => sum + runsLeft(rows, seeds), 0);
  const next = () => {
    const runs = cells.flatMap(({ of, rows }) =>
      wantedRuns(rows, seeds).map(({ stage, ...run }) => ({ stage, key: { ...of, ...run } })),
    );
    const [first] = runs.filter(({ key }) => !running.has(keyOf(key))).sort((a, b) => a.stage - b.stage);
    if (first !== undefined) running.add(keyOf(first.key));
    return first?.key;
  };
  await trainAll(jobs, device, next, (row) => {
    appendRow(row);
    cellOf(cells, row).rows.push(row);
    progress.tell(row, left());
  });
}

/** Trains rows of seed 0 again, and compares their checksums. Their times may replace the stored ones. */
async function repeat(cells: readonly Cell[], device: string, jobs: number, keepsTimes: boolean): Promise<void> {
  const { name, portable } = await init(device);
  if (!portable)
    throw new OptError("UNSUPPORTED", "leaderboard", `${name} rounds in its own way here.`, "Take Node 22.");
  const stored = cells.map(({ rows }) => firstRow(rows)).filter((row) => row !== undefined);
  const rows = [...stored];
  const progress = new Progress();
  let differing = 0;
  await trainAll(
    jobs,
    device,
    () => rows.shift(),
    (row) => {
      const { checksum } = stored.find((each) => keyOf(each) === keyOf(row))!;
      if (row.checksum !== checksum) differing++;
      else if (keepsTimes) appendRow(row);
      const says = row.checksum === checksum ? `${checksum} again` : `${row.checksum} on ${device}, ${checksum} stored`;
      progress.tell(row, rows.length, says);
    },
  );
  console.log(`${stored.length - differing} of ${stored.length} rows have the stored checksum on ${device}.`);
  if (differing > 0) process.exitCode = 1;
}

function write(): void {
  const rows = [...readRows().values()];
  const cells = measuredCells(rows);
  writeFileSync(PAGE_FILE, pageOf(cells));
  writeFileSync(GUIDE_FILE, guideOf(cells));
  writeFileSync(REPEATABLE_FILE, repeatableOf(cells));
  const known = new Set(cells.map(({ of }) => cellKey(of)));
  const missing = cellsOf(rows).filter(({ of }) => !known.has(cellKey(of)));
  if (missing.length > 0)
    console.log(`Not measured: ${missing.map(({ of }) => `${of.optimizer} (${of.task})`).join(", ")}.`);
}
