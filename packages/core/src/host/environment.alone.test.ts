import { afterEach, describe, expect, it, vi } from "vitest";
import { environmentVariable } from "./environment";

afterEach(() => vi.unstubAllGlobals());

const rejecting = {
  get OPT_TEST(): string {
    throw new Error("Requires env access");
  },
};

describe("environmentVariable", () => {
  it.each([
    ["set", { env: { OPT_TEST: "4" } }, "4"],
    ["empty", { env: { OPT_TEST: "" } }, undefined],
    ["not set", { env: {} }, undefined],
    ["not to be read", { env: rejecting }, undefined],
    ["of a page", undefined, undefined],
  ])("%s", (_name, process, value) => {
    vi.stubGlobal("process", process);
    expect(environmentVariable("OPT_TEST")).toBe(value);
  });
});
