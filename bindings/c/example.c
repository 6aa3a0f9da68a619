#include <sparsekit/sparsekit.h>
#include <stdio.h>

static float data[64 * 128];

int main(void) {
  for (int i = 0; i < 64 * 128; ++i) data[i] = (float)(i * 37 % 101 + 1);

  int64_t shape[2] = {64, 128};
  spk_buffer weights = {data, 64 * 128, SPK_F32, SPK_LAYOUT_VIEW, NULL};
  spk_view *view = NULL;
  spk_status status = spk_view_create(SPK_F32, 2, shape, NULL, 0, &view);
  if (status == SPK_OK) status = spk_prune_nm(NULL, view, &weights, NULL, 1, 2, 4, NULL);
  if (status != SPK_OK) {
    char message[SPK_MESSAGE_SIZE];
    spk_last_error_copy(message, sizeof message, NULL);
    fprintf(stderr, "%s: %s\n", spk_status_string(status), message);
  }
  spk_view_release(view);

  int nonzero = 0;
  for (int i = 0; i < 64 * 128; ++i) nonzero += data[i] != 0;
  printf("density %g\n", nonzero / (64.0 * 128.0));
  return status != SPK_OK || nonzero != 64 * 128 / 2;
}
