// The backstop: what was dropped without dispose comes back through the garbage collector. It needs --expose-gc, so a child runs it.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

it("gives back dropped tensors once, of every op, with and without tapes", () => {
  const child = fileURLToPath(new URL("../../testing/dropped.ts", import.meta.url));
  const options = ["--expose-gc", "--conditions=@opt/source", "--import", "tsx", child];
  const output = execFileSync(process.execPath, options, { encoding: "utf8", stdio: "pipe", timeout: 240_000 });
  expect(JSON.parse(output)).toEqual({ leaking: [], twice: [] });
});
