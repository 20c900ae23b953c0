/** What a machine without a GPU, a driver or the binaries is told. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listDevices } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { binaryFolder, loadAddon, openDriver } from "./addon";
import "./index";

const folder = (() => {
  try {
    return binaryFolder();
  } catch {
    return undefined;
  }
})();

it("names the package that is missing, and what serves without it", () => {
  expectCode("DEVICE_UNAVAILABLE", () => binaryFolder("plan9-mips"));
  expect(() => binaryFolder("plan9-mips")).toThrow(/@opt\/kernels-cuda-plan9-mips.*"cpu" and "wasm"/);
});

it("says when a binary does not load", () =>
  expectCode("DEVICE_UNAVAILABLE", () => loadAddon(fileURLToPath(new URL(".", import.meta.url)))));

it("rejects a binary of another version", () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-cuda-"));
  mkdirSync(join(folder, "opt_cuda.node"));
  writeFileSync(join(folder, "opt_cuda.node", "index.js"), "module.exports = { doorVersion: 0 };");
  expect(() => loadAddon(folder)).toThrow(/must be of version 1, got 0.*native-cuda/);
});

it("says that there is no NVIDIA driver, and which functions an old one lacks", ({ skip }) => {
  if (folder === undefined) return skip("no binary of this platform is here");
  const addon = loadAddon(folder);
  expect(() => openDriver(addon, "libnothing.so.1")).toThrow(/\[cuda\] no NVIDIA driver: libnothing\.so\.1/);
  expect(() => openDriver(addon, "libm.so.6")).toThrow(/too old: it has no cuInit, cuDriverGetVersion/);
});

it("is listed with its reason, and nothing throws", async () => {
  const { name, available, reason } = (await listDevices()).find((device) => device.name === "cuda")!;
  expect(name).toBe("cuda");
  expect(available || /no NVIDIA driver|not installed|no kernels|no NVIDIA GPU/.test(reason!)).toBe(true);
});
