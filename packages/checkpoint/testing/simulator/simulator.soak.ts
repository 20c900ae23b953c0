import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { bundled } from "@opt/testkit/bundled";
import { expect, it } from "vitest";

/** OPT_SEED begins elsewhere, OPT_SEEDS says how many: one seed alone runs its history again. */
const first = Number(process.env.OPT_SEED ?? 1);
const count = Number(process.env.OPT_SEEDS ?? 1_000_000);

it(`${count} histories keep every promise`, async () => {
  const [program] = await bundled(new URL("../programs/simulate.ts", import.meta.url).pathname);
  const share = Math.ceil(count / availableParallelism());
  const processes = [];
  for (let done = 0; done < count; done += share) {
    const args = [first + done, Math.min(share, count - done)].map(String);
    const child = spawn(process.execPath, [program, ...args], {
      stdio: "inherit",
    });
    processes.push(once(child, "exit"));
  }
  for (const [status] of await Promise.all(processes)) expect(status).toBe(0);
}, 86_400_000);
