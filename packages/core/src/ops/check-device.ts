/** Operands of one launch live on one device. */
import type { Device } from "../device/device";
import { OptError } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";

/** The device of all tensors. @throws OptError DEVICE_MISMATCH */
export function checkDevice(where: string, tensors: readonly Tensor[]): Device {
  const { device } = tensors[0]!;
  for (const tensor of tensors) {
    tensor.checkAlive(); // before an op allocates what it would leave behind
    if (tensor.device === device) continue;
    const problem = `operands must be on one device, got ${device.name} and ${tensor.device.name}.`;
    throw new OptError("DEVICE_MISMATCH", where, problem, "Move one with to().");
  }
  return device;
}
