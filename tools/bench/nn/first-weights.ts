/** The weights that every contender begins with. */
import { noGrad } from "@opt/core";
import type { Module } from "@opt/nn";
import { values } from "./values";

/** Matrices of about the size that layers begin with, one for what norms multiply by and small biases. */
export function setFirstWeights(model: Module): void {
  let index = 0;
  noGrad(() => {
    for (const [name, parameter] of model.namedParameters()) {
      const { shape } = parameter;
      const inputs = shape.slice(1).reduce((product, extent) => product * extent, 1);
      const drawn = values(parameter.size, 7919 + 2 * index++);
      const isScale = shape.length === 1 && name.endsWith("weight");
      parameter.set(drawn.map((x) => (shape.length > 1 ? (2 * x) / Math.sqrt(inputs) : isScale ? 1 : x / 8)));
    }
  });
}
