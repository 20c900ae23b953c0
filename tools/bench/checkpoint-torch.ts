/** torch DCP on the same tensors: four processes' save, two processes' load, timed inside torch. */
import { spawnSync } from "node:child_process";

export interface DcpSeconds {
  readonly save: number;
  readonly reshard: number;
}

/** The times, or why there are none. */
export function torchDcp(folder: string, tensors: number): DcpSeconds | string {
  const python = process.env.OPT_TORCH_PYTHON;
  if (!python) return "OPT_TORCH_PYTHON is not set";
  const script = new URL("./checkpoint_dcp.py", import.meta.url).pathname;
  const ran = spawnSync(python, [script, folder, String(tensors)], { encoding: "utf8" });
  const line = ran.stdout?.split("\n").find((one) => one.startsWith("{"));
  return line
    ? (JSON.parse(line) as DcpSeconds)
    : `${python} failed: ${(ran.stderr ?? String(ran.error)).trim().split("\n").at(-1)}`;
}
