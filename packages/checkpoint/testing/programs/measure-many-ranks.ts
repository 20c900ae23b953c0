/** A save of many ranks, and a rank that loads it, each in a process of its own. */
import { spawnSync } from "node:child_process";
import { bundled } from "@opt/testkit/bundled";

export interface Measured {
  /** Milliseconds for the plan of one rank, bytes of memory, and bytes of the manifest or of what the rank reads. */
  readonly planned: number;
  readonly memory: number;
  readonly bytes: number;
}

export interface ManyRanks {
  readonly save: Measured & { readonly committed: number; readonly boxes: number };
  readonly plan: Measured & { readonly opened: number; readonly files: number };
}

/** `parameters`: tensors of the model; AdamW has three more of each. */
export async function measureManyRanks(folder: string, ranks: number, parameters: number): Promise<ManyRanks> {
  const [program] = await bundled(new URL("./many-ranks.ts", import.meta.url).pathname);
  const measure = (what: "save" | "plan") => {
    const args = [program, folder, String(ranks), String(parameters), what];
    const ran = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 240_000 });
    if (ran.status !== 0) throw new Error(ran.stderr);
    return JSON.parse(ran.stdout);
  };
  return { save: measure("save"), plan: measure("plan") };
}
