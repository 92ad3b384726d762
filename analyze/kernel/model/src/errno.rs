//! Names of errors.

/// Name of an error that a system call returns (as a positive number), as in `errno.h`. Numbers
/// above 511 are internal to the kernel: tracers see them where programs see another error or none.
pub fn errno_name(errno: i64) -> Option<&'static str> {
    let at = NAMES
        .binary_search_by_key(&errno, |(number, _)| *number)
        .ok()?;
    Some(NAMES.get(at)?.1)
}

/// The error number in a system call's result, if the result is an error.
#[inline]
pub fn errno_of(result: i64) -> Option<i64> {
    // The kernel's limit for errors in place of results (MAX_ERRNO).
    (-4095..0).contains(&result).then(|| -result)
}

/// Sorted by number (those of all architectures that `Abi` knows).
#[rustfmt::skip]
static NAMES: &[(i64, &str)] = &[
    (1, "EPERM"), (2, "ENOENT"), (3, "ESRCH"), (4, "EINTR"), (5, "EIO"), (6, "ENXIO"), (7, "E2BIG"),
    (8, "ENOEXEC"), (9, "EBADF"), (10, "ECHILD"), (11, "EAGAIN"), (12, "ENOMEM"), (13, "EACCES"),
    (14, "EFAULT"), (15, "ENOTBLK"), (16, "EBUSY"), (17, "EEXIST"), (18, "EXDEV"), (19, "ENODEV"),
    (20, "ENOTDIR"), (21, "EISDIR"), (22, "EINVAL"), (23, "ENFILE"), (24, "EMFILE"), (25, "ENOTTY"),
    (26, "ETXTBSY"), (27, "EFBIG"), (28, "ENOSPC"), (29, "ESPIPE"), (30, "EROFS"), (31, "EMLINK"),
    (32, "EPIPE"), (33, "EDOM"), (34, "ERANGE"), (35, "EDEADLK"), (36, "ENAMETOOLONG"), (37, "ENOLCK"),
    (38, "ENOSYS"), (39, "ENOTEMPTY"), (40, "ELOOP"), (42, "ENOMSG"), (43, "EIDRM"), (44, "ECHRNG"),
    (45, "EL2NSYNC"), (46, "EL3HLT"), (47, "EL3RST"), (48, "ELNRNG"), (49, "EUNATCH"), (50, "ENOCSI"),
    (51, "EL2HLT"), (52, "EBADE"), (53, "EBADR"), (54, "EXFULL"), (55, "ENOANO"), (56, "EBADRQC"),
    (57, "EBADSLT"), (59, "EBFONT"), (60, "ENOSTR"), (61, "ENODATA"), (62, "ETIME"), (63, "ENOSR"),
    (64, "ENONET"), (65, "ENOPKG"), (66, "EREMOTE"), (67, "ENOLINK"), (68, "EADV"), (69, "ESRMNT"),
    (70, "ECOMM"), (71, "EPROTO"), (72, "EMULTIHOP"), (73, "EDOTDOT"), (74, "EBADMSG"),
    (75, "EOVERFLOW"), (76, "ENOTUNIQ"), (77, "EBADFD"), (78, "EREMCHG"), (79, "ELIBACC"),
    (80, "ELIBBAD"), (81, "ELIBSCN"), (82, "ELIBMAX"), (83, "ELIBEXEC"), (84, "EILSEQ"),
    (85, "ERESTART"), (86, "ESTRPIPE"), (87, "EUSERS"), (88, "ENOTSOCK"), (89, "EDESTADDRREQ"),
    (90, "EMSGSIZE"), (91, "EPROTOTYPE"), (92, "ENOPROTOOPT"), (93, "EPROTONOSUPPORT"),
    (94, "ESOCKTNOSUPPORT"), (95, "EOPNOTSUPP"), (96, "EPFNOSUPPORT"), (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"), (99, "EADDRNOTAVAIL"), (100, "ENETDOWN"), (101, "ENETUNREACH"),
    (102, "ENETRESET"), (103, "ECONNABORTED"), (104, "ECONNRESET"), (105, "ENOBUFS"), (106, "EISCONN"),
    (107, "ENOTCONN"), (108, "ESHUTDOWN"), (109, "ETOOMANYREFS"), (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"), (112, "EHOSTDOWN"), (113, "EHOSTUNREACH"), (114, "EALREADY"),
    (115, "EINPROGRESS"), (116, "ESTALE"), (117, "EUCLEAN"), (118, "ENOTNAM"), (119, "ENAVAIL"),
    (120, "EISNAM"), (121, "EREMOTEIO"), (122, "EDQUOT"), (123, "ENOMEDIUM"), (124, "EMEDIUMTYPE"),
    (125, "ECANCELED"), (126, "ENOKEY"), (127, "EKEYEXPIRED"), (128, "EKEYREVOKED"),
    (129, "EKEYREJECTED"), (130, "EOWNERDEAD"), (131, "ENOTRECOVERABLE"), (132, "ERFKILL"),
    (133, "EHWPOISON"), (512, "ERESTARTSYS"), (513, "ERESTARTNOINTR"), (514, "ERESTARTNOHAND"),
    (515, "ENOIOCTLCMD"), (516, "ERESTART_RESTARTBLOCK"), (517, "EPROBE_DEFER"), (518, "EOPENSTALE"),
    (519, "ENOPARAM"), (521, "EBADHANDLE"), (522, "ENOTSYNC"), (523, "EBADCOOKIE"), (524, "ENOTSUPP"),
    (525, "ETOOSMALL"), (526, "ESERVERFAULT"), (527, "EBADTYPE"), (528, "EJUKEBOX"),
    (529, "EIOCBQUEUED"), (530, "ERECALLCONFLICT"), (531, "ENOGRACE"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_may_be_any_number() {
        // `rt_sigreturn` returns whatever a register contained.
        let found = [i64::MIN, i64::MIN + 1, -4096, -4095, -1, 0, i64::MAX].map(errno_of);
        assert_eq!(found, [None, None, None, Some(4095), Some(1), None, None]);
    }

    #[test]
    fn errors_have_names() {
        assert!(NAMES.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(errno_name(2), Some("ENOENT"));
        assert_eq!(errno_name(11), Some("EAGAIN"));
        assert_eq!(errno_name(110), Some("ETIMEDOUT"));
        assert_eq!(errno_name(512), Some("ERESTARTSYS"));
        assert_eq!(errno_name(0), None);
        assert_eq!(errno_name(4000), None);
        assert_eq!(errno_of(-2), Some(2));
        assert_eq!(errno_of(-4096), None);
        assert_eq!(errno_of(7), None);
    }
}
