import fc from "fast-check";
import { expect, it } from "vitest";
import { insideOf } from "./safe-path";

const expectRefused = (name: unknown) =>
  expect(() => insideOf("/run", name, "x")).toThrow(expect.objectContaining({ code: "REFUSED" }));

it("is below the folder, whatever a file names, or rejected", () => {
  const part = fc.oneof(fc.constantFrom("", ".", "..", "a", "..a", "c:", "\\", "\0"), fc.string());
  const name = fc.oneof(
    fc.string(),
    fc.array(part, { maxLength: 4 }).map((parts) => parts.join("/")),
  );
  fc.assert(
    fc.property(name, (name) => {
      const parts = name.split("/");
      const isSafe = !/[\\:\0]/.test(name) && parts.every((each) => each !== "" && each !== "." && each !== "..");
      if (isSafe) expect(insideOf("/run", name, "x")).toBe(`/run/${name}`);
      else expectRefused(name);
    }),
  );
});

const endless: unknown[] = [];
endless.push(endless);
it.each([[undefined], [null], [5], [2n ** 70n], [["a"]], [endless], [{}]])("is no %s", expectRefused);
