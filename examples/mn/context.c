/* Contexts: registers of x86-64 that a call preserves, or ucontext (MN_UCONTEXT), which also saves
 * the signal mask by a system call. */
#include "context.h"

#include <stdint.h>

#if defined(__x86_64__) && !defined(MN_UCONTEXT)

__asm__(".text\n"
	".globl mn_switch_context\n"
	".hidden mn_switch_context\n"
	".type mn_switch_context, @function\n"
	"mn_switch_context:\n"
	"	.cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbp, 0\n"
	"	pushq %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %rbx, 0\n"
	"	pushq %r12\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r12, 0\n"
	"	pushq %r13\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r13, 0\n"
	"	pushq %r14\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r14, 0\n"
	"	pushq %r15\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %r15, 0\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq (%rsi), %rsp\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %r15\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r15\n"
	"	popq %r14\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r14\n"
	"	popq %r13\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r13\n"
	"	popq %r12\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %r12\n"
	"	popq %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %rbx\n"
	"	popq %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size mn_switch_context, . - mn_switch_context\n"
	/* Unwinders stop here: the return address is undefined. r12 is the function. */
	".type mn_begin, @function\n"
	"mn_begin:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined %rip\n"
	"	xorl %ebp, %ebp\n"
	"	call *%r12\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size mn_begin, . - mn_begin\n"
	".globl mn_begin\n"
	".hidden mn_begin\n");

void mn_begin(void);

/* What mn_switch_context restores. */
struct frame {
	uint32_t mxcsr;
	uint16_t x87_control, unused;
	void *r15, *r14, *r13, *r12, *rbx, *rbp;
	void (*return_address)(void);
};

void mn_make_context(struct context *context, void *stack, size_t size, void (*entry)(void))
{
	/* At mn_begin the stack pointer, just after the frame, is a multiple of 16. */
	uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
	struct frame *frame = (struct frame *)(top - sizeof(struct frame));
	*frame = (struct frame){ .mxcsr = 0x1f80, .x87_control = 0x37f, .return_address = mn_begin };
	frame->r12 = (void *)(uintptr_t)entry;
	context->stack_pointer = frame;
}

#else

void mn_make_context(struct context *context, void *stack, size_t size, void (*entry)(void))
{
	getcontext(&context->saved);
	context->saved.uc_stack.ss_sp = stack;
	context->saved.uc_stack.ss_size = size;
	context->saved.uc_link = NULL;
	makecontext(&context->saved, entry, 0);
}

void mn_switch_context(struct context *from, const struct context *to)
{
	swapcontext(&from->saved, &to->saved);
}

#endif
