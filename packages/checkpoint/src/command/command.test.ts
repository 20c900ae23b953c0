import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundled } from "@opt/testkit/bundled";
import { beforeEach, describe, expect, it } from "vitest";
import { floats, mindsporeFile } from "../../testing/files/made-files";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { loadCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";
import { runCommand } from "./command";
import { formatBytes, parseBytes, table } from "./output";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);

beforeEach(async () => {
  await saveCheckpoint(at("run"), { step: 4, tensors: sampleTensors(1), values: { epoch: 2 } }, { world: 4 });
});

describe("opt-checkpoint", () => {
  it("inspect shows tensors, layout and values, and the same as JSON", async () => {
    const { code, out, error } = await run("inspect", at("run"));
    expect([code, error]).toEqual([0, ""]);
    expect(out).toMatch(/step +4\nranks +4, mesh rank 4\n/);
    expect(out).toMatch(/fc\.weight +F32 +\[8, 6\] +192 B +4 +param\n/);
    expect(out).toMatch(/moments\.fc\.weight .*state of fc\.weight/);
    expect(out).toContain("epoch = 2");
    const json = JSON.parse((await run("inspect", at("run"), "--json")).out);
    expect(json).toMatchObject({ step: 4, steps: [4], world: 4, values: { epoch: 2 } });
  });

  it("without a command prints its help in lines", async () => {
    const { code, out, error } = await run();
    expect([code, error]).toEqual([0, ""]);
    expect(out).toMatch(/^Usage: opt-checkpoint .*\n\n/);
    expect(out).toMatch(/^ {2}merge .*\n/m);
  });

  it("colors what is right, what is wrong and its help, where colors are shown", async () => {
    const told = async (hasColors: boolean, ...args: string[]) => {
      let text = "";
      const add = (more: string) => {
        text += more;
      };
      await runCommand(args, {
        out: add,
        error: add,
        isTerminal: false,
        hasColors: { out: hasColors, error: hasColors },
      });
      return text;
    };
    const [green, red, bold] = ["\u001b[32m", "\u001b[31m", "\u001b[1m"];
    expect(await told(true, "verify", at("run"))).toContain(green);
    expect(await told(true, "verify", at("none"))).toContain(red);
    expect(await told(true)).toContain(`${bold}Usage:`);
    for (const args of [["verify", at("run")], ["verify", at("none")], []])
      expect(await told(false, ...args)).not.toContain("\u001b");
  });

  it("inspect of a folder of runs names them", async () => {
    await saveCheckpoint(at("b"), { step: 1, tensors: sampleTensors(1) });
    const { code, error } = await run("inspect", folder.path);
    expect(code).toBe(1);
    expect(error).toContain("it is a folder of runs. Give one of them: b, run.");
  });

  it("verify: 0 where whole; 1, the tensor, file and bytes named, where not", async () => {
    expect(await run("verify", at("run"))).toMatchObject({
      code: 0,
      error: "",
      out: expect.stringMatching(/whole, 5 tensors/),
    });
    const file = at("run/step-00000004/rank-00001.safetensors");
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 4;
    writeFileSync(file, bytes);
    const { code, out, error } = await run("verify", at("run"));
    expect([code, out]).toEqual([1, ""]);
    expect(error).toMatch(
      /^\S+: rank-00001\.safetensors bytes \d+ to \d+: checksum must be [0-9a-f]{8}, got [0-9a-f]{8}\.\n$/,
    );
    expect(JSON.parse((await run("verify", at("run"), "--json")).out)).toMatchObject({
      ok: false,
      problems: [{ file: "rank-00001.safetensors" }],
    });
  });

  it("merge, reshard and diff: the same tensors throughout", async () => {
    expect((await run("merge", at("run"), "--out", at("m.safetensors"), "--max-memory", "1MiB")).code).toBe(0);
    writeFileSync(
      at("layout.json"),
      JSON.stringify({ mesh: { shape: [3], axes: ["x"] }, tensors: { "*.weight": [null, "x"], "*": "replicate" } }),
    );
    expect((await run("reshard", at("run"), "--out", at("three"), "--layout", at("layout.json"))).code).toBe(0);
    expect((await run("reshard", at("three"), "--out", at("two"), "--ranks", "2")).code).toBe(0);
    for (const other of ["m.safetensors", "three", "two"]) {
      expect(await run("diff", at("run"), at(other))).toMatchObject({
        code: 0,
        out: expect.stringContaining("equal: 5 tensors"),
      });
    }
  });

  it("diff names each tensor that differs, with exit 1, unless within tolerance", async () => {
    const w = (value: number) => ({ w: { dtype: "f32", shape: [2], data: new Float32Array([1, value]) } });
    await saveCheckpoint(at("a"), { step: 0, tensors: { ...w(2), only: w(1).w } });
    await saveCheckpoint(at("b"), { step: 0, tensors: w(2.5) });
    const { code, out } = await run("diff", at("a"), at("b"));
    expect(code).toBe(1);
    expect(out).toBe("only: missing in b\nw: 1 of 2 elements differ, the first is number 1, largest distance 0.5\n");
    expect((await run("diff", at("a"), at("b"), "--names", "w", "--atol", "0.5")).code).toBe(0);
    expect((await run("diff", at("a"), at("b"), "--names", "w", "--rtol", "0.1")).code).toBe(1);
  });

  it("convert writes what others read", async () => {
    expect((await run("convert", at("run"), "--to", "safetensors", "--out", at("c.safetensors"))).code).toBe(0);
    const { tensors } = await loadCheckpoint(at("c.safetensors"), { as: "plain" });
    expect(tensors["fc.weight"]!.data).toEqual(sampleTensors(1)["fc.weight"]!.data);
  });

  it("convert takes names, renames, ranks and a share of them, and says where a step is not", async () => {
    const to = (format: string, name: string, ...flags: string[]) =>
      run("convert", at("run"), "--to", format, "--out", at(name), ...flags);
    expect(await to("pt", "a.pt", "--exclude", "mask", "--rename", "fc.*=head.*", "--dtype", "f64")).toMatchObject({
      code: 0,
      error: "",
    });
    const { out } = await run("inspect", at("a.pt"));
    expect(out).toMatch(/model\.head\.weight +F64/);
    expect(out).not.toContain("mask");
    expect((await to("ckpt", "ranks", "--ranks", "2", "--job", "2/2", "--names", "fc.weight", "--crc")).code).toBe(0);
    expect(readdirSync(at("ranks"))).toEqual(["rank_1"]);
    expect((await to("safetensors", "b", "--step", "5")).code).toBe(1);
    expect((await to("dcp", "run")).code).toBe(1);
    expect((await to("pt", "b", "--exclude", "fc.wieght")).code).toBe(2);
  });

  it("merge takes a source layout for ranks without a strategy", async () => {
    for (const rank of [0, 1]) {
      mkdirSync(at(`ms/rank_${rank}`), { recursive: true });
      writeFileSync(at(`ms/rank_${rank}/a-1_2.ckpt`), mindsporeFile([["w", [1], "Float32", floats(rank)]]));
    }
    writeFileSync(at("layout.json"), JSON.stringify({ mesh: { shape: [2], axes: ["x"] }, tensors: { w: ["x"] } }));
    const merged = await run("merge", at("ms"), "--out", at("w.safetensors"), "--source-layout", at("layout.json"));
    expect(merged).toMatchObject({ code: 0, error: "" });
    const { tensors } = await loadCheckpoint(at("w.safetensors"));
    expect([...tensors.w!.dataSync()]).toEqual([0, 1]);
  });

  it("takes the best step of a run in every command that reads one", async () => {
    for (const [step, loss] of [3, 1, 2].entries())
      await saveCheckpoint(at("best"), { step, tensors: sampleTensors(step), values: { loss } });
    const read = async (...flags: string[]) => JSON.parse((await run("inspect", at("best"), ...flags, "--json")).out);
    expect((await read("--best", "loss")).step).toBe(1);
    expect((await read("--best", "loss", "--lowest")).step).toBe(1);
    expect((await read("--best", "loss", "--highest")).step).toBe(0);
    for (const [command, ...flags] of [
      ["verify"],
      ["explain"],
      ["merge", "--out", at("m")],
      ["reshard", "--out", at("r"), "--ranks", "2"],
      ["convert", "--out", at("c"), "--to", "checkpoint"],
    ]) {
      const { out, error } = await run(command!, at("best"), ...flags, "--best", "loss", "--json");
      expect([error, out.includes("step-00000001") || command === "merge" || command === "convert"]).toEqual([
        "",
        true,
      ]);
    }
    expect((await run("diff", at("best"), at("m"), "--best", "loss")).code).toBe(1);
    expect((await run("diff", at("best"), at("c"), "--best", "loss")).out).toContain("equal");
    expect((await run("diff", at("best"), at("best"), "--best", "loss", "--names", "fc.*")).out).toContain("equal: 2");
  });

  it("prunes a run", async () => {
    for (const [step, loss] of [3, 1, 2, 4].entries())
      await saveCheckpoint(at("runs"), { step, tensors: {}, values: { loss } });
    const prune = (...flags: string[]) => run("prune", at("runs"), ...flags);
    const best = ["--keep-last", "1", "--keep-best", "2", "--best", "loss"];
    expect((await prune(...best, "--dry-run")).out).toBe("would remove 0\nkept 1, 2, 3\n");
    expect((await prune(...best)).out).toBe("removed 0\nkept 1, 2, 3\n");
    expect(JSON.parse((await prune("--keep-every", "2", "--json")).out)).toEqual({ removed: [1], kept: [2, 3] });
    expect((await prune("--best", "loss", "--highest")).out).toBe("removed 2\nkept 3\n");
    expect((await prune("--keep-last", "9")).out).toBe("nothing to remove\nkept 3\n");
    for (const flags of [[], ["--keep-best", "1"], ["--keep-last", "0"], ["--best", "lss"], ["--keep-last", "x"]])
      expect((await prune(...flags)).code).toBe(2);
    expect((await run("prune", at("none"), "--keep-last", "1")).code).toBe(1);
  });

  it("believes a Python file only so far, and names the flag", async () => {
    const path = new URL("../../testing/files/torch/lightning.pt", import.meta.url).pathname;
    const { code, error } = await run("inspect", path, "--max-objects", "10");
    expect([code, error]).toEqual([1, expect.stringContaining("--max-objects")]);
    expect((await run("inspect", path, "--max-objects", "100000")).code).toBe(0);
    const header = ["inspect", at("run"), "--max-header-bytes"];
    expect((await run(...(header as [string]), "16")).error).toContain("raise --max-header-bytes");
    expect((await run(...(header as [string]), "1MiB")).code).toBe(0);
  });

  it("lists names as people count", async () => {
    const names = ["layer.10.w", "layer.2.w", "layer.1.w"];
    const tensors = Object.fromEntries(names.map((name) => [name, sampleTensors(1)["fc.bias"]!]));
    await saveCheckpoint(at("layers"), { step: 1, tensors });
    await saveCheckpoint(at("empty"), { step: 1, tensors: {} });
    const listed = (text: string) => [...text.matchAll(/^layer\.\d+/gm)].map(([name]) => name);
    const natural = ["layer.1", "layer.2", "layer.10"];
    expect(listed((await run("inspect", at("layers"))).out)).toEqual(natural);
    expect(listed((await run("diff", at("layers"), at("empty"))).out)).toEqual(natural);
  });

  it.each<[string, string[]]>([
    ["a path too many", ["verify", "x", "y"]],
    ["an option without its value", ["merge", "x", "--out"]],
    ["highest without best", ["inspect", "x", "--highest"]],
    ["a step and the best", ["inspect", "x", "--step", "1", "--best", "loss"]],
    ["the highest and the lowest", ["inspect", "x", "--best", "loss", "--highest", "--lowest"]],
    ["a layout that is not there", ["reshard", "x", "--out", "y", "--layout", "none.json"]],
    ["an invalid job", ["convert", "x", "--to", "ckpt", "--out", "y", "--job", "half"]],
    ["a rename without a name", ["convert", "x", "--to", "ckpt", "--out", "y", "--rename", "fc"]],
    ["an unknown format", ["convert", "x", "--to", "onnx", "--out", "y"]],
    ["an unknown command", ["melt"]],
    ["an unknown option", ["inspect", "x", "--loud"]],
    ["no path", ["verify"]],
    ["merge without --out", ["merge", "x"]],
    ["an invalid size", ["merge", "x", "--out", "y", "--max-memory", "lots"]],
    ["ranks that are no number", ["reshard", "x", "--out", "y", "--ranks", "two"]],
    ["a negative tolerance", ["diff", "a", "b", "--atol", "-1"]],
  ])("exits with 2 and one line for %s", async (_, args) => {
    const { code, out, error } = await run(...args);
    expect([code, out]).toEqual([2, ""]);
    expect(error.trimEnd().split("\n")).toHaveLength(1);
  });

  it("reshard with neither ranks nor layout, or a layout that is no JSON, is wrong usage", async () => {
    expect((await run("reshard", at("run"), "--out", at("x"))).code).toBe(2);
    expect((await run("reshard", at("run"), "--out", at("x"), "--layout", at("run"))).code).toBe(2);
  });

  it.each<[string, () => string[], string]>([
    ["what is looked at", () => ["inspect", at("nothing")], ""],
    ["the folder that is to be cleaned", () => ["clean", at("nothing")], "there is no such folder. Check the path."],
    [
      "the folder that is to be written into",
      () => ["merge", at("run"), "--out", at("no/m.safetensors")],
      "m.safetensors] there is no folder",
    ],
  ])("exits with 1 and one line where %s is not there", async (_, args, words) => {
    const { code, error } = await run(...args());
    expect(code).toBe(1);
    expect(error).toContain(words);
    expect(error).not.toContain("tmp-"); // no name of the command's own
    expect(error.trimEnd().split("\n")).toHaveLength(1);
  });

  it.each<[string, string[], number]>([
    ["a step", ["reshard", "--ranks", "2"], 1],
    ["a folder", ["convert", "--to", "dcp"], 1],
    ["a merged file", ["merge"], 1],
    ["a safetensors file", ["convert", "--to", "safetensors"], 1],
    ["a file of PyTorch", ["convert", "--to", "pt"], 1],
    ["a file of MindSpore", ["convert", "--to", "ckpt"], 1],
  ])(
    "%s that is there is replaced with --overwrite, which the rejection names",
    async (_, [command, ...flags], code) => {
      const again = (...more: string[]) => run(command!, at("run"), "--out", at("out"), ...flags, ...more);
      expect((await again()).code).toBe(0);
      expect(await again()).toMatchObject({ code, out: "", error: expect.stringContaining("--overwrite") });
      expect((await again("--overwrite")).code).toBe(0);
    },
  );

  it("--version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    expect(await run("--version")).toEqual({ code: 0, out: `${version}\n`, error: "" });
  });

  it("ends in silence where nobody reads on", async () => {
    const [program] = await bundled(new URL("./cli.ts", import.meta.url).pathname);
    const child = spawn(process.execPath, [program, "--help"]);
    child.stdout.destroy();
    let error = "";
    child.stderr.on("data", (text) => {
      error += text;
    });
    const [code] = await once(child, "close");
    expect([code, error]).toEqual([0, ""]);
  });

  it.each(["inspect", "verify", "merge", "reshard", "diff", "convert"])("%s --help has examples", async (name) => {
    const { code, out } = await run(name, "--help");
    expect(code).toBe(0);
    expect(out).toContain(`$ opt-checkpoint ${name} `);
  });
});

describe("what people read and write", () => {
  it.each([
    ...["", "k", "m", "g", "t"].flatMap((prefix, power) =>
      Object.entries({ "": 1024, b: 1000, ib: 1024 }).flatMap(([suffix, base]): [string, number | undefined][] => {
        const bytes = prefix === "" && suffix === "ib" ? undefined : 1.5 * base ** power;
        const text = `1.5 ${prefix}${suffix}`;
        return [text, text.toUpperCase(), text.replace(" ", "")].map((each) => [each, bytes && Math.floor(bytes)]);
      }),
    ),
    ["4096", 4096],
    ["", undefined],
    ["-1", undefined],
  ])("%j is %s bytes", (text, bytes) => expect(parseBytes(text)).toBe(bytes));
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.50 KiB"],
    [64 << 20, "64.0 MiB"],
  ])("%d bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));
  it("tables line up", () => {
    expect(
      table(
        ["a", "n"],
        [
          ["xyz", "1"],
          ["b", "22"],
        ],
        [1],
      ),
    ).toBe("a     n\n---  --\nxyz   1\nb    22");
  });
});
