// What a strict interface refuses: of a list when it is recorded, of its sizes and buffers when it is submitted.
#pragma once

#include <cstdint>

#include "core/caps.h"
#include "hal/device.h"

namespace tern::mean_device {

Status check_recorded(const Program& program, uint32_t list, const Caps& caps);
// A list that check_recorded took.
Status check_submitted(const Program& program, uint32_t list, const Caps& caps, const hal::Binding& binding);

}  // namespace tern::mean_device
