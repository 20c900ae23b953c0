/** The worker of the leaderboard: trains one row on wasm, and gives the checksum of its last weights. */
import "@opt/kernels-wasm";
import { init } from "@opt/core";
import { entrants } from "../../../e2e/leaderboard/src/entrants";
import { type TaskName, tasks } from "../../../e2e/leaderboard/src/tasks";
import { train } from "../../../e2e/leaderboard/src/train";
import type { LeaderboardMessage, Repeatable } from "./leaderboard-messages";

const tell = (message: LeaderboardMessage) => postMessage(message);

/** The site has the first of MNIST's digits. */
async function readFile(name: string): Promise<Uint8Array> {
  const response = await fetch(new URL(`../../demos/digits/${name}`, location.href));
  if (!response.ok) throw new Error(`The digits did not load: for ${name} the server says ${response.status}.`);
  return new Uint8Array(await response.arrayBuffer());
}

async function repeat({ task: name, optimizer, lr }: Repeatable): Promise<void> {
  const device = await init("wasm");
  tell({ kind: "device", name: device.name, isPortable: device.portable });
  const task = tasks[name as TaskName];
  const entrant = entrants.find((each) => each.name === optimizer)!;
  const show = (steps: number, loss: number) => tell({ kind: "loss", steps, budget: task.budget, loss });
  const { checksum } = await train(task, await task.prepared(readFile), entrant, { lr, seed: 0, show });
  tell({ kind: "done", checksum });
}

addEventListener("message", ({ data }: MessageEvent<Repeatable>) => {
  repeat(data).catch(reportError); // the page hears of it by `onerror`
});
