import { expectCode } from "@opt/testkit";
import { expect, it, vi } from "vitest";
import { openWasmBackend } from "../backend";

const ops = vi.hoisted(() => ({ areImported: false }));

vi.mock("@opt/core/backend", async (original) => ({
  ...(await original<typeof import("@opt/core/backend")>()),
  isCarried: () => ops.areImported,
}));

it("loads the kernels of ops that were imported after it opened", async () => {
  const wasm = await openWasmBackend({ threads: 1 });
  const spec = { kind: "fold", dtype: "f32" } as const;
  expectCode("DEVICE_UNAVAILABLE", () => wasm.kernel(spec));
  ops.areImported = true;
  await wasm.load();
  expect(wasm.kernel(spec).spec).toBe(spec);
});
