// Views of DLPack tensors.
#pragma once

#include "core/view.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace spk {

struct DlpackView {
  Ref<View> view;
  spk_buffer buffer;
};

DlpackView view_from_dlpack(const DLManagedTensor &tensor);
DlpackView view_from_dlpack(const DLManagedTensorVersioned &tensor, bool writable);

}  // namespace spk
