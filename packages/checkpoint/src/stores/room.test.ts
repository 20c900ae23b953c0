/** Where the system lets a process have only a few files open. */
import { spawnSync } from "node:child_process";
import { bundled } from "@opt/testkit/bundled";
import { expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";

const scratch = scratchFolder();

it.skipIf(process.platform === "win32")(
  "100 ranks are saved, read and written anew where 256 files may be open (skipped: Windows has no such limit)",
  async () => {
    const [program] = await bundled(new URL("../../testing/programs/few-files.ts", import.meta.url).pathname);
    const command = `ulimit -n 256 && exec "$0" "${program}" "${scratch.path}" 100`;
    const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath], { encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["whole.safetensors true\nanew true\nckpt true\n", ""]);
  },
);
