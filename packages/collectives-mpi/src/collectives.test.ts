/** Every collective among real processes, through both libraries from one binary: what the local engine's ranks hold, too. */
import { describe, expect, it } from "vitest";
import { checkCollectives } from "../../parallel/src/testing/collectives";
import { runJob } from "../../parallel/src/testing/job";
import { IMPORTS, launchers } from "./testing/launchers";

describe.each(launchers)("$name", ({ missing, launcher }) => {
  it.skipIf(missing).each([1, 2, 3, 4])(`%d ranks hold what the collectives promise${missing ?? ""}`, (size) =>
    checkCollectives(size, { imports: IMPORTS, launcher }),
  );

  it.skipIf(missing)(`a rank keeps its place, its traps and its children${missing ?? ""}`, async () => {
    const body = `
      const { spawnSync } = await import("node:child_process");
      const again = await connect();
      // A function that reads past the end of a memory of one page: (func (drop (i32.load (i32.const 65536)))).
      const bytes = [0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,5,3,1,0,1,7,5,1,1,102,0,0,10,12,1,10,0,65,128,128,4,40,2,0,26,11];
      const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes)));
      let trap = "";
      try { exports.f(); } catch (error) { trap = error.constructor.name; }
      const code = \`import { openMpi } from "${new URL("index.ts", import.meta.url).href}"; openMpi().catch((e) => console.log(e.code))\`;
      const child = spawnSync(process.execPath, [...process.execArgv, "--input-type=module", "-e", code], { encoding: "utf8" });
      tell([again === communicator, trap, child.stdout.trim()]);`;
    const { told, error } = await runJob(2, body, { imports: IMPORTS, launcher });
    expect([told, error]).toEqual([new Array(2).fill([true, "RuntimeError", "DEVICE_UNAVAILABLE"]), ""]);
  });

  it.skipIf(missing)(`a worker thread is no rank${missing ?? ""}`, async () => {
    const body = `
      const { Worker } = await import("node:worker_threads");
      const code = \`import("${import.meta.resolve("tsx/esm/api")}").then(({ register }) => {
        register();
        return import("${new URL("index.ts", import.meta.url).href}");
      }).then(({ openMpi }) => openMpi()).catch(({ code, message }) => process.stdout.write(code + message));\`;
      const worker = new Worker(code, { eval: true });
      await new Promise((resolve) => worker.on("exit", resolve));`;
    const { out } = await runJob(1, body, { imports: IMPORTS, launcher });
    expect(out).toMatch(/UNSUPPORTED\[mpi\] a rank is a process, got a worker thread/);
  });
});
