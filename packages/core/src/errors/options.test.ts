import { expect, it } from "vitest";
import { OptError } from "./errors";
import { checkOptions, didYouMean } from "./options";

const kinds = { stride: ["number", "array"], bias: "boolean", labelSmoothing: "number", init: "any" } as const;

function rejection(options: unknown): string {
  try {
    checkOptions("Layer", options, kinds);
  } catch (error) {
    expect(error).toBeInstanceOf(OptError);
    expect((error as OptError).code).toBe("BAD_ARGUMENT");
    return (error as OptError).message;
  }
  return "taken";
}

it.each([[{}], [{ stride: 2, bias: false }], [{ stride: [1, 2], bias: undefined, init: null }], [Object.create(null)]])(
  "takes %j",
  (options) => expect(rejection(options)).toBe("taken"),
);

it.each([
  [{ label_smoothing: 0.1 }, "there is no option label_smoothing. Did you mean labelSmoothing?"],
  [{ bais: true }, "there is no option bais. Did you mean bias?"],
  [{ groups: 2 }, "there is no option groups. Options: stride, bias, labelSmoothing, init."],
  [{ toString: 2 }, "there is no option toString."],
  [{ bias: 1 }, "bias must be a boolean, got 1."],
  [{ stride: "2" }, 'stride must be a number or an array, got "2".'],
  [{ labelSmoothing: null }, "labelSmoothing must be a number, got null."],
  [0.5, "options must be an object, got 0.5."],
  [null, "options must be an object, got null."],
  [[1], "options must be an object, got [1]."],
  [new Map(), "options must be an object, got a Map."],
  [1n, "options must be an object, got 1n."],
])("rejects %s", (options, message) => expect(rejection(options)).toContain(message));

it("lists nothing where nothing is taken", () => expect(didYouMean("a", [])).toBe("It takes no options."));
