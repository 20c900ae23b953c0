/** The standard ABI of MPI 5, spoken by a thin library over Open MPI: its handles, statuses and constants are in no library yet. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { checkCollectives } from "../../parallel/testing/collectives";
import { runJob } from "../../parallel/testing/job";
import { IMPORTS, openMpi } from "../testing/launchers";

const folder = mkdtempSync(join(tmpdir(), "opt-abi-"));
afterAll(() => rmSync(folder, { recursive: true }));

const library = join(folder, "libmpi_abi.so");
const source = new URL("../testing/standard_abi.c", import.meta.url).pathname;
const compiled = spawnSync(process.env.CC ?? "cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
const missing = compiled.status === 0 ? openMpi.missing : " (no C compiler)";
const launcher: typeof openMpi.launcher = (size, program) => ({
  ...openMpi.launcher(size, program),
  env: { OPT_MPI_LIBRARY: library },
});

describe("a library of the standard ABI", () => {
  it.skipIf(missing)(`holds what the collectives promise${missing ?? ""}`, () =>
    checkCollectives(3, { imports: IMPORTS, launcher }),
  );

  it.skipIf(missing)(`names what differs, and has sums of its own${missing ?? ""}`, async () => {
    const body = `
      const { engine } = communicator.group.world;
      const sums = {};
      for (const dtype of ["f32", "f64", "i32", "u8"])
        for (const reduction of ["sum", "min", "max"]) {
          const values = { f32: Float32Array, f64: Float64Array, i32: Int32Array, u8: Uint8Array }[dtype].of(communicator.rank + 1);
          await engine.allReduceOf([0, 1], dtype)(0, new Uint8Array(values.buffer), reduction);
          (sums[reduction] ??= []).push(values[0]);
        }
      const moves = [[8, 16], [16, 8]].map(([sent, awaited], tag) =>
        (communicator.rank === 0 ? engine.send(1, tag, new Uint8Array(sent)) : engine.receive(0, tag, new Uint8Array(awaited)))
          .catch(({ code, message }) => code + message));
      tell([sums, await Promise.all(moves)]);`;
    const { told, error } = await runJob(2, body, { imports: IMPORTS, launcher });
    expect(error).toBe("");
    const of = (value: number) => new Array(4).fill(value);
    expect(told[1]).toEqual([
      { sum: of(3), min: of(1), max: of(2) },
      [
        expect.stringMatching(/^BAD_SHAPE.*rank 0 sent 8 bytes where this rank waits for 16/),
        expect.stringMatching(/^BAD_SHAPE.*rank 0 sent more than 8 bytes where this rank waits for 8/),
      ],
    ]);
  });
});
